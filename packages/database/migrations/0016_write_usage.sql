-- Extends the usage that validators write behind. Alerts of overuse are counted separately from the activity, so that
-- their counts are complete even if activity is aggregated or dropped. Batches also contain the last use of API keys
-- and the missing hostnames of machines.

-- Replaces `write_behind`, which only validators of earlier versions call. Accepts three additional lists:
--   overuse    [{license, count, first, last}]   checks that ended in TOO_MANY_MACHINES
--   key_uses   [{id, at}]                        the last use of API keys
--   hostnames  [{license, machine, hostname}]    hostnames of machines; `machine` is in hexadecimal
create function write_usage(validator uuid, flush bigint, rules jsonb, checks jsonb, overuse jsonb, key_uses jsonb, hostnames jsonb,
    minutes float8[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[], firsts float8[], lasts float8[],
    seen boolean[])
  returns boolean language plpgsql security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  insert into flushes (validator_id, number) values (validator, flush)
  on conflict (validator_id) do update set number = excluded.number, at = now() where flushes.number < excluded.number;
  if not found then
    return false;
  end if;

  perform ensure_partition('check_counts', at), ensure_partition('activity', at)
  from (values (now()), (now() + interval '1 day')) as soon (at);
  perform ensure_partition('check_counts', at) from (
    select distinct sane_time(to_timestamp(hour / 1000)) as at from jsonb_to_recordset(checks) as r (hour float8)) needed;
  perform ensure_partition('activity', at) from (
    select distinct sane_time(to_timestamp(minute / 1000)) as at from unnest(minutes) as r (minute)) needed;

  perform write_rule_counts(rules);
  perform write_check_counts(checks);
  perform write_check_activity(minutes, license_ids, codes, machine_ids, counts, firsts, lasts);
  perform write_machines_seen(license_ids, machine_ids, lasts, seen);
  perform write_hostnames(hostnames);
  perform write_overuse_counts(overuse);
  perform write_key_uses(key_uses);
  return true;
end $$;

create function write_overuse_counts(rows jsonb) returns void language sql set search_path = public, pg_temp as $$
  insert into alerts (id, organization_id, license_id, kind, count, first_at, last_at)
  select new_id(), l.organization_id, l.id, 'OVERUSE', sum(r.count),
    sane_time(to_timestamp(min(r.first) / 1000)), sane_time(to_timestamp(max(r.last) / 1000))
  from jsonb_to_recordset(rows) as r (license uuid, count bigint, first float8, last float8)
    join licenses l on l.id = r.license
  group by l.organization_id, l.id order by l.id
  on conflict (license_id, kind) where acknowledged_at is null do update set count = alerts.count + excluded.count,
    first_at = least(alerts.first_at, excluded.first_at), last_at = greatest(alerts.last_at, excluded.last_at);
$$;

-- Stores the last use of API keys. Replaces a time that is far from the current time by the current time. The stored
-- time never becomes earlier.
create function write_key_uses(rows jsonb) returns void language sql set search_path = public, pg_temp as $$
  insert into credential_uses (credential_id, last_used_at)
  select c.id, least(now(), sane_time(to_timestamp(max(r.at) / 1000)))
  from jsonb_to_recordset(rows) as r (id uuid, at float8) join credentials c on c.id = r.id
  where c.kind = 'API_KEY'
  group by c.id order by c.id
  on conflict (credential_id) do update set
    last_used_at = greatest(credential_uses.last_used_at, excluded.last_used_at);
$$;

create function write_hostnames(rows jsonb) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform from machines m
  where m.hostname is null and (m.license_id, m.machine_id) in (
    select r.license, decode(r.machine, 'hex') from jsonb_to_recordset(rows) as r (license uuid, machine text))
  order by m.license_id, m.machine_id for no key update;
  update machines m set hostname = n.hostname
  from (
    select r.license, decode(r.machine, 'hex') as machine, max(r.hostname) as hostname
    from jsonb_to_recordset(rows) as r (license uuid, machine text, hostname text) group by 1, 2
  ) n
  where m.license_id = n.license and m.machine_id = n.machine and m.hostname is null;
end $$;

-- Adds to the grants of earlier migrations.
alter function grant_validator() rename to grant_validator_before_usage;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_usage();
  if exists (select from pg_roles where rolname = 'keyward_validator') then
    grant execute on function write_usage(uuid, bigint, jsonb, jsonb, jsonb, jsonb, jsonb, float8[], uuid[], text[], bytea[],
      integer[], float8[], float8[], boolean[]) to keyward_validator;
  end if;
end $$;
