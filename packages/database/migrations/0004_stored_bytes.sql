-- The bytes of an organization count toward quotas, as its rows do (docs/api.md#m13). Entries and events from before this migration have the
-- size 0, so neither they nor their deletion count. An online step counts the metadata of existing rows.
alter table audit_log add column bytes integer not null default 0;
-- `is_of_caller` is false for events that the service writes by itself. Users of apps can cause these events.
alter table events add column bytes integer not null default 0, add column is_of_caller boolean not null default false;
-- The day of a use that counts for one day only, or null.
alter table organization_usage add column day date;

create trigger audit_log_bytes_added after insert on audit_log referencing new table as changed
  for each statement execute function count_bytes();
create trigger audit_log_bytes_deleted after delete on audit_log referencing old table as changed
  for each statement execute function count_bytes();
create trigger audit_log_bytes_truncated after truncate on audit_log execute function recount_after_truncate();
create trigger events_bytes_added after insert on events referencing new table as changed
  for each statement execute function count_bytes();
create trigger events_bytes_deleted after delete on events referencing old table as changed
  for each statement execute function count_bytes();
create trigger events_bytes_truncated after truncate on events execute function recount_after_truncate();
create trigger customers_bytes_added after insert on customers referencing new table as changed
  for each statement execute function count_bytes();
create trigger customers_bytes_deleted after delete on customers referencing old table as changed
  for each statement execute function count_bytes();
create trigger customers_bytes_updated after update of metadata on customers for each row
  when (old.metadata is distinct from new.metadata) execute function count_changed_bytes();
create trigger products_bytes_added after insert on products referencing new table as changed
  for each statement execute function count_bytes();
create trigger products_bytes_deleted after delete on products referencing old table as changed
  for each statement execute function count_bytes();
create trigger products_bytes_updated after update of metadata on products for each row
  when (old.metadata is distinct from new.metadata) execute function count_changed_bytes();
create trigger licenses_bytes_added after insert on licenses referencing new table as changed
  for each statement execute function count_bytes();
create trigger licenses_bytes_deleted after delete on licenses referencing old table as changed
  for each statement execute function count_bytes();
create trigger licenses_bytes_updated after update of metadata on licenses for each row
  when (old.metadata is distinct from new.metadata) execute function count_changed_bytes();
