-- The change log. Triggers write it in the transaction that makes a change, so a manual UPDATE is logged, too. A validator reads exactly
-- the changes that became visible after its last read. An entry identifies the changed row, and the reader fetches the current row. NOTIFY
-- only wakes readers; the log is authoritative.
--
-- A reader stores a snapshot (pg_snapshot) instead of a sequence number, because the order in which transactions commit differs from the
-- order in which they were assigned their sequence numbers.
--
-- A validator continues to follow the log while it compares its index with the tables. For that, the log must lose as few entries as
-- possible:
--
--   * TRUNCATE logs the rows that it removes.
--   * A request to reload everything (void_change_log) keeps the entries.
--   * A crash or a failover keeps the entries, which are part of the same history. A validator can determine the point from
--     which its own history differs, because its heartbeats (`validators.landmark`) are part of the history, too.
--     Transactions become visible in the order of the write-ahead log. So a server whose history contains a
--     heartbeat also contains every transaction that was visible to the validator at that heartbeat.

create table change_log (
  xid xid8 not null default pg_current_xact_id(),
  -- O organization, C credential (API keys), K signing key, P product, U customer, L license, M machine, R rule
  entity "char" not null,
  id uuid not null, -- for a machine: the id of its license
  machine_id bytea, -- null except for machines
  -- With the organization, a validator can read a very large change of one organization separately, and follow the changes of the others
  -- meanwhile. It is null in entries for machines that were deleted with their license.
  organization_id uuid
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5);
create index change_log_xid on change_log (xid);

-- The table has one row. A reader before `pruned` reloads. Entries that are visible in `gone` have been deleted or will be deleted.
-- `reloads` is the number of requested reloads. `server` identifies the server that wrote the log. A restored log is void, because its
-- transaction ids have no meaning on another server.
create table feed_state (
  single boolean primary key default true check (single),
  pruned pg_snapshot not null,
  server text not null,
  gone pg_snapshot not null,
  reloads bigint not null default 0
);
insert into feed_state (pruned, server, gone) values ('1:1:', '', '1:1:');

-- Snapshots taken at intervals. Pruning deletes the entries that are visible in the latest snapshot that is old enough.
create table feed_marks (
  at timestamptz not null,
  snapshot pg_snapshot not null
);
create index feed_marks_at on feed_marks (at);

-- One row per run of the server. The table is empty after every crash, because it is not in the write-ahead log. A
-- crash may lose transactions that were complete in the snapshots of readers: rollbacks, and commits that did not wait
-- for the disk. The server then assigns the ids of these transactions again, so a log is valid only as long as this row
-- exists.
-- The table has more than one row only after a backup was restored while readers were already connected.
create unlogged table server_run (id uuid primary key);

-- Every running validator, with the last snapshot of the change log that it has applied.
create table validators (
  id uuid primary key,
  name text not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  applied text, -- a pg_snapshot; null until the index is loaded
  ready boolean not null default false,
  details jsonb not null default '{}',
  landmark text -- the latest snapshot that the validator has applied in the history of this server
);

-- The number of each validator's last flush, written in the statement that applies the flush, so that a retry changes
-- nothing.
create table flushes (
  validator_id uuid primary key,
  number bigint not null,
  at timestamptz not null default now()
);

-- The triggers that log the changes of a table. The calls in functions/log_changes_of.sql list the columns whose changes are logged.
do $$
declare
  logged text;
begin
  foreach logged in array array['organizations', 'credentials', 'signing_keys', 'products', 'customers', 'licenses', 'access_rules'] loop
    execute format('create trigger %1$I after insert on %2$I referencing new table as new_rows
      for each statement execute function %3$I()', logged || '_inserted', logged, 'log_changes_of_' || logged);
    execute format('create trigger %1$I after update on %2$I referencing old table as old_rows new table as new_rows
      for each statement execute function %3$I()', logged || '_updated', logged, 'log_changes_of_' || logged);
    execute format('create trigger %1$I after delete on %2$I referencing old table as old_rows
      for each statement execute function %3$I()', logged || '_deleted', logged, 'log_changes_of_' || logged);
    execute format('create trigger %1$I before truncate on %2$I execute function log_truncate()', logged || '_truncated', logged);
  end loop;
end $$;
create trigger machines_truncated before truncate on machines execute function log_truncate();

-- The triggers that count the rows of each quota.
do $$
declare
  counted text;
  count_function text;
begin
  foreach counted in array array['licenses', 'products', 'customers', 'members', 'access_rules', 'access_rule_sets', 'signing_keys',
    'credentials', 'webhook_endpoints'] loop
    count_function := case counted when 'credentials' then 'count_credentials' else 'count_usage' end;
    execute format('create trigger %1$I after insert on %2$I referencing new table as changed
      for each statement execute function %3$I()', counted || '_count_added', counted, count_function);
    execute format('create trigger %1$I after delete on %2$I referencing old table as changed
      for each statement execute function %3$I()', counted || '_count_deleted', counted, count_function);
    execute format('create trigger %1$I after truncate on %2$I execute function recount_after_truncate()',
      counted || '_count_truncated', counted);
  end loop;
end $$;
create trigger credentials_count_updated after update on credentials
  referencing old table as old_rows new table as new_rows for each statement execute function count_credentials();
