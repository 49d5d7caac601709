-- The metadata of templates, and their former values, count toward the quota of bytes like those of licenses (0004).
create trigger license_templates_bytes_added after insert on license_templates referencing new table as changed
  for each statement execute function count_bytes();
create trigger license_templates_bytes_deleted after delete on license_templates referencing old table as changed
  for each statement execute function count_bytes();
create trigger license_templates_bytes_updated after update of metadata, former on license_templates for each row
  when ((old.metadata, old.former) is distinct from (new.metadata, new.former)) execute function count_changed_bytes();
create trigger license_templates_bytes_truncated after truncate on license_templates execute function recount_after_truncate();
