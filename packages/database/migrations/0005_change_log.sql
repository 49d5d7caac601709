-- The change log. Triggers write it in the transaction that makes a change, so a manual UPDATE is logged, too. A validator
-- reads exactly the changes that became visible after its last read. An entry identifies the changed row, and the reader
-- fetches the current row. NOTIFY only wakes readers; the log is authoritative.
--
-- A reader stores a snapshot (pg_snapshot) instead of a sequence number, because the order in which transactions commit
-- differs from the order in which they were assigned their sequence numbers.

create table change_log (
  xid xid8 not null default pg_current_xact_id(),
  -- O organization, C credential (API keys), K signing key, P product, U customer, L license, M machine, R rule
  entity "char" not null,
  id uuid not null, -- for a machine: the id of its license
  machine_id bytea -- null except for machines
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5);
create index change_log_xid on change_log (xid);

-- The table has one row. Entries that are visible in `pruned` have been deleted or will be deleted. `server` identifies
-- the server that wrote the log. A restored log is void, because its transaction ids have no meaning on another server.
create table feed_state (
  single boolean primary key default true check (single),
  pruned pg_snapshot not null,
  server text not null
);
insert into feed_state (pruned, server) values ('1:1:', '');

-- Not used; dropped in 0012.
create unlogged table feed_incarnation (
  single boolean primary key default true check (single),
  id uuid not null
);

-- Snapshots taken at intervals. Pruning deletes the entries that are visible in the latest snapshot that is old enough.
create table feed_marks (
  at timestamptz not null,
  snapshot pg_snapshot not null
);
create index feed_marks_at on feed_marks (at);

-- Returns whether everything that is visible in `b` is also visible in `a`.
create function snap_covers(a pg_snapshot, b pg_snapshot) returns boolean language sql immutable parallel safe as $$
  select pg_snapshot_xmax(a) >= pg_snapshot_xmax(b)
     and not exists (select from pg_snapshot_xip(a) x where pg_visible_in_snapshot(x, b)) $$;

-- Returns the entries that have become visible after the snapshot `since`. The function is stable, so that it uses the
-- snapshot of the calling statement. Sequential scans are off, because the planner cannot estimate how few entries
-- match.
create function changed_since(since pg_snapshot) returns table (entity "char", id uuid, machine_id bytea) language plpgsql
  stable rows 100 set search_path = public, pg_temp set enable_seqscan = off as $$
begin
  return query
  select distinct l.entity, l.id, l.machine_id from change_log l
  where l.xid >= pg_snapshot_xmax(since) or l.xid = any (array(select pg_snapshot_xip(since)));
end $$;

-- Arguments: the letter of the entity, the columns that a verdict depends on, and optionally a condition that selects
-- the rows to log. An update that changes none of these columns is not logged and wakes no validator.
create function log_changes() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
declare
  wanted text := format('select %s from %%s where %s', tg_argv[1], coalesce(tg_argv[2], 'true'));
  before text := format(wanted, 'old_rows');
  after text := format(wanted, 'new_rows');
  logged bigint;
begin
  execute format('insert into change_log (entity, id) select %L::"char", id from (%s) changed', tg_argv[0],
    case tg_op
      when 'INSERT' then after
      when 'DELETE' then before
      else format('select distinct id from ((%1$s except %2$s) union all (%2$s except %1$s)) different', before, after)
    end);
  get diagnostics logged = row_count;
  if logged > 0 then
    perform pg_notify('keyward_changes', '');
  end if;
  return null;
end $$;

-- Logs changes of machines, and keeps license_slots.used equal to the number of machines even after manual changes.
-- Locks the rows of license_slots in the same order as claims do. A claim wakes no validator, because another validator
-- needs its result only for a check of the same machine.
create function log_machines() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform from license_slots where license_id in (select license_id from changed) order by license_id for no key update;
  update license_slots s set used = used + c.machines * case tg_op when 'INSERT' then 1 else -1 end
  from (select license_id, count(*)::integer as machines from changed group by license_id) c
  where s.license_id = c.license_id;
  insert into change_log (entity, id, machine_id) select 'M', license_id, machine_id from changed;
  if tg_op = 'DELETE' and found then
    perform pg_notify('keyward_changes', '');
  end if;
  return null;
end $$;
create trigger machines_added after insert on machines
  referencing new table as changed for each statement execute function log_machines();
create trigger machines_removed after delete on machines
  referencing old table as changed for each statement execute function log_machines();

-- Makes every reader reload, because no reader's snapshot covers a snapshot that contains this transaction.
create function void_change_log() returns void language sql security definer set search_path = public, pg_temp as $$
  delete from change_log;
  delete from feed_marks;
  with own as (
    select pg_current_xact_id()::text::numeric as xid
  ), taken as (
    select pg_current_snapshot() as snapshot
  ), still_open as ( -- otherwise a transaction that was already open would make readers reload until it ends
    select x::text::numeric as xid from taken, pg_snapshot_xip(snapshot) x
    union
    select g from taken, own, generate_series(pg_snapshot_xmax(snapshot)::text::numeric, own.xid - 1) g
  )
  update feed_state set pruned = (
    select format('%s:%s:%s', coalesce(min(o.xid), own.xid + 1), own.xid + 1, string_agg(o.xid::text, ',' order by o.xid))
    from own left join still_open o on o.xid < own.xid group by own.xid)::pg_snapshot;
  select pg_notify('keyward_changes', '');
$$;

create function log_truncate() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform void_change_log();
  return null;
end $$;
create trigger machines_truncated after truncate on machines execute function log_truncate();

do $$
declare
  logged record;
begin
  for logged in
    select * from (values
      ('organizations', 'O', 'id', 'true'),
      ('credentials', 'C', 'id, organization_id, secret_hash, expires_at, revoked_at', 'kind = ''API_KEY'''),
      ('signing_keys', 'K', 'id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at', 'true'),
      ('products', 'P', 'id, organization_id', 'true'),
      ('customers', 'U', 'id, organization_id', 'true'),
      ('licenses', 'L', 'id, organization_id, product_id, customer_id, key, status, max_machines, expires_at', 'true'),
      ('access_rules', 'R', 'id, organization_id, kind, type, value, scope, product_id, license_id, customer_id, '
        'expires_at, allow_suspended_or_expired', 'true')
    ) as t (name, letter, columns, rows)
  loop
    execute format($sql$
      create trigger %1$I after insert on %2$I referencing new table as new_rows
        for each statement execute function log_changes(%3$L, %4$L, %5$L)
    $sql$, logged.name || '_inserted', logged.name, logged.letter, logged.columns, logged.rows);
    execute format($sql$
      create trigger %1$I after update on %2$I referencing old table as old_rows new table as new_rows
        for each statement execute function log_changes(%3$L, %4$L, %5$L)
    $sql$, logged.name || '_updated', logged.name, logged.letter, logged.columns, logged.rows);
    execute format($sql$
      create trigger %1$I after delete on %2$I referencing old table as old_rows
        for each statement execute function log_changes(%3$L, %4$L, %5$L)
    $sql$, logged.name || '_deleted', logged.name, logged.letter, logged.columns, logged.rows);
    execute format('create trigger %1$I after truncate on %2$I execute function log_truncate()',
      logged.name || '_truncated', logged.name);
  end loop;
end $$;

-- One row per run of the server. The table is empty after every crash, because it is not in the write-ahead log. A
-- crash may lose transactions that were complete in the snapshots of readers: rollbacks, and commits that did not wait
-- for the disk. The server then assigns the ids of these transactions again, so a log is valid only as long as this row
-- exists.
-- The table has more than one row only after a backup was restored while readers were already connected.
create unlogged table server_run (id uuid primary key);

create function log_place() returns text language plpgsql security definer set search_path = public, pg_temp as $$
declare
  system text;
begin
  begin
    select system_identifier::text into system from pg_control_system();
  exception when insufficient_privilege then -- on some managed servers
    system := '';
  end;
  return format('%s/%s/%s/%s', system, (select oid from pg_database where datname = current_database()),
    'change_log'::regclass::oid, (select string_agg(id::text, ' ' order by id) from server_run));
end $$;

-- Returns the identity of the server, its run since the last crash, its timeline and this log. Every reader calls it
-- when it connects. First voids a log that was written on another server (a restored backup) or before a crash. Fails
-- on a standby, whose snapshots lack open transactions, so that a reader there would lose changes.
create function open_change_log() returns text language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if pg_is_in_recovery() then
    raise exception 'This server is a standby; changes can only be followed on the primary' using errcode = '25006';
  end if;
  if (select server from feed_state) <> log_place() or not exists (select from server_run) then
    perform from feed_state for update;
    insert into server_run (id) select gen_random_uuid() where not exists (select from server_run);
    if (select server from feed_state) <> log_place() then
      perform void_change_log();
      update feed_state set server = log_place();
    end if;
  end if;
  return format('%s/%s', log_place(), left(pg_walfile_name(pg_current_wal_lsn()), 8));
end $$;

-- Deletes up to `most` entries that are older than `keep`. The maximum keeps the call short. Every validator calls it
-- about once a minute, and again immediately while it returns `most`. Returns the number of deleted entries, or null if
-- another call is in progress.
create function prune_change_log(keep interval, most integer) returns bigint language plpgsql
  security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  mark record;
  gone bigint;
begin
  if not pg_try_advisory_xact_lock(hashtext('prune_change_log')) then
    return null;
  end if;
  insert into feed_marks (at, snapshot) values (clock_timestamp(), pg_current_snapshot());
  select * into mark from feed_marks where at <= clock_timestamp() - keep order by at desc limit 1;
  if mark is null then
    return 0;
  end if;
  update feed_state set pruned = mark.snapshot where snap_covers(mark.snapshot, pruned); -- otherwise the log was voided just now
  delete from change_log where ctid = any (array(select ctid from change_log
    where xid < pg_snapshot_xmax(mark.snapshot) and pg_visible_in_snapshot(xid, mark.snapshot) limit most));
  get diagnostics gone = row_count;
  delete from feed_marks where at < mark.at;
  -- Delete the rows of validators that no longer run.
  delete from flushes where at < now() - interval '1 day';
  delete from validators where seen_at < now() - interval '1 day';
  return gone;
end $$;

revoke execute on function void_change_log(), open_change_log(), log_place(), prune_change_log(interval, integer) from public;
