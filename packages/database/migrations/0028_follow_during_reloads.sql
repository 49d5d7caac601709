-- A validator continues to follow the log while it compares its index with the tables. For that, the log must lose as few
-- entries as possible:
--
--   * TRUNCATE logs the rows that it removes.
--   * A request to reload everything (void_change_log) keeps the entries.
--   * A crash or a failover keeps the entries, which are part of the same history. A validator can determine the point from
--     which its own history differs, because its heartbeats (`validators.landmark`) are part of the history, too.
--     Transactions become visible in the order of the write-ahead log. So a server whose history contains a
--     heartbeat also contains every transaction that was visible to the validator at that heartbeat.

-- Entries that are visible in `gone` have been deleted or will be deleted. `reloads` is the number of requested
-- reloads. Validators of earlier versions reload when their position is before `pruned`.
alter table feed_state add column gone pg_snapshot, add column reloads bigint not null default 0;
update feed_state set gone = pruned;
alter table feed_state alter column gone set not null;

-- The latest snapshot that the validator has applied in the history of this server.
alter table validators add column landmark text;

-- Makes every validator reload. Keeps the entries, so that a validator can follow the log meanwhile.
create or replace function void_change_log() returns void language sql security definer set search_path = public, pg_temp as $$
  with own as (
    select pg_current_xact_id()::text::numeric as xid
  ), taken as (
    select pg_current_snapshot() as snapshot
  ), still_open as ( -- otherwise a transaction that was already open would make readers reload until it ends
    select x::text::numeric as xid from taken, pg_snapshot_xip(snapshot) x
    union
    select g from taken, own, generate_series(pg_snapshot_xmax(snapshot)::text::numeric, own.xid - 1) g
  )
  update feed_state set reloads = reloads + 1, pruned = (
    select format('%s:%s:%s', coalesce(min(o.xid), own.xid + 1), own.xid + 1, string_agg(o.xid::text, ',' order by o.xid))
    from own left join still_open o on o.xid < own.xid group by own.xid)::pg_snapshot;
  select pg_notify('keyward_changes', '');
$$;

-- Deletes the log, whose entries have no meaning on this server.
create function forget_change_log() returns void language sql security definer set search_path = public, pg_temp as $$
  select void_change_log();
  delete from change_log;
  delete from feed_marks;
  update feed_state set gone = pruned;
$$;

-- As before, but a crash or a failover does not delete the log. In these cases the server has the same system identifier,
-- which some managed servers hide, and one new run. A backup that is restored into a running database adds a second new
-- run.
create or replace function open_change_log_with(features text[]) returns text language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  writer text;
  home text[];
begin
  if pg_is_in_recovery() then
    raise exception 'This server is a standby; changes can only be followed on the primary' using errcode = '25006';
  end if;
  perform require_features(features);
  if (select server from feed_state) <> log_place() or not exists (select from server_run) then
    perform from feed_state for update;
    insert into server_run (id) select gen_random_uuid() where not exists (select from server_run);
    select server into writer from feed_state;
    if writer <> log_place() then
      home := (string_to_array(log_place(), '/'))[1:3];
      if home[1] = '' or home <> (string_to_array(writer, '/'))[1:3] or (select count(*) from server_run) <> 1 then
        perform forget_change_log();
      end if;
      update feed_state set server = log_place();
    end if;
  end if;
  return change_log_identity();
end $$;

-- As before, and also sets `gone`.
create or replace function prune_change_log(keep interval, most integer) returns bigint language plpgsql
  security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  mark record;
  deleted bigint;
begin
  if not pg_has_role(session_user, current_user, 'member') then
    keep := greatest(keep, interval '1 minute');
  end if;
  if not pg_try_advisory_xact_lock(hashtext('prune_change_log')) then
    return null;
  end if;
  insert into feed_marks (at, snapshot) values (clock_timestamp(), pg_current_snapshot());
  select * into mark from feed_marks where at <= clock_timestamp() - keep order by at desc limit 1;
  if mark is null then
    return 0;
  end if;
  update feed_state set pruned = mark.snapshot where snap_covers(mark.snapshot, pruned); -- otherwise the log was voided just now
  update feed_state set gone = mark.snapshot where snap_covers(mark.snapshot, gone);
  delete from change_log where ctid = any (array(select ctid from change_log
    where xid < pg_snapshot_xmax(mark.snapshot) and pg_visible_in_snapshot(xid, mark.snapshot) limit most));
  get diagnostics deleted = row_count;
  delete from feed_marks where at < mark.at;
  -- Delete the rows of validators that no longer run.
  delete from flushes where at < now() - interval '1 day';
  delete from validators where seen_at < now() - interval '1 day';
  return deleted;
end $$;

-- Logs the rows that TRUNCATE is about to remove. For a table that is not listed here, it requests a reload.
create or replace function log_truncate() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  case tg_table_name
    when 'organizations' then
      insert into change_log (entity, id, organization_id) select 'O', id, id from organizations;
    when 'credentials' then
      insert into change_log (entity, id, organization_id)
      select 'C', id, organization_id from credentials where kind = 'API_KEY';
    when 'signing_keys' then
      insert into change_log (entity, id, organization_id) select 'K', id, organization_id from signing_keys;
    when 'products' then
      insert into change_log (entity, id, organization_id) select 'P', id, organization_id from products;
    when 'customers' then
      insert into change_log (entity, id, organization_id) select 'U', id, organization_id from customers;
    when 'licenses' then
      insert into change_log (entity, id, organization_id) select 'L', id, organization_id from licenses;
    when 'access_rules' then
      insert into change_log (entity, id, organization_id) select 'R', id, organization_id from access_rules;
    when 'machines' then
      insert into change_log (entity, id, machine_id, organization_id)
      select 'M', m.license_id, m.machine_id, l.organization_id from machines m left join licenses l on l.id = m.license_id;
      update license_slots set used = 0 where used <> 0;
    else
      perform void_change_log();
  end case;
  perform pg_notify('keyward_changes', '');
  return null;
end $$;

do $$
declare
  truncated record;
begin
  for truncated in
    select t.tgname as name, c.relname as logged_table from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where t.tgfoid = 'log_truncate'::regproc and c.relnamespace = current_schema()::regnamespace
  loop
    execute format('create or replace trigger %I before truncate on %I execute function log_truncate()',
      truncated.name, truncated.logged_table);
  end loop;
end $$;

-- As before, and also stores the landmark.
create or replace function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb)
  returns void language plpgsql security definer set search_path = public, pg_temp as $$
declare
  reached text;
begin
  perform applied_snapshot::pg_snapshot; -- fails for an invalid snapshot
  if applied_snapshot is not null and more->>'server' <> change_log_identity() then
    applied_snapshot := '1:1:';
  elsif more ? 'server' then
    reached := applied_snapshot;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into validators as v (id, name, applied, ready, details, landmark)
  values (validator, left(named, 200), applied_snapshot, is_ready, more, reached)
  on conflict (id) do update set name = excluded.name, applied = excluded.applied, ready = excluded.ready,
    details = excluded.details, landmark = coalesce(excluded.landmark, v.landmark), seen_at = now();
end $$;

-- Returns the latest snapshot that the validator has applied in the history of this server, or null.
create function landmark_of(validator uuid) returns text language sql stable
  security definer set search_path = public, pg_temp as $$
  select landmark from validators where id = validator;
$$;

revoke execute on function forget_change_log(), landmark_of(uuid) from public;

alter function grant_validator() rename to grant_validator_before_landmarks;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_landmarks();
  if exists (select from pg_roles where rolname = 'keyward_validator') then
    grant execute on function landmark_of(uuid) to keyward_validator;
  end if;
end $$;
revoke execute on function grant_validator() from public;
