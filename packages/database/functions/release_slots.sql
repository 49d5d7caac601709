-- Releases slots and returns the outcomes in the order of the arguments. A statement commits and notifies once, however many machines it
-- releases.
--   released   the machine held a slot
--   unknown    the machine held no slot, or may not be released, because its file is still valid or apps have released too many slots
--   busy       the row of the license is locked; repeat the call later
-- `used` is the count after the call, or null for the outcomes unknown and busy. `xid` is the id of the transaction, or null if nothing was
-- written. Nothing is locked for a machine that does not exist, so the release of an unknown machine costs a lookup in an index.
--
-- Once apps have released `max_releases` slots of a license in the last 30 days, no further slot is released. The machine keeps its slot,
-- and an entry of the activity records the rejected release.
-- `released_by` is the actor in the activity, or null for an app.
create or replace function release_slots(license_ids uuid[], machine_ids bytea[], released_by jsonb)
  returns table (outcome text, used integer, xid text) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  concerned uuid[];
  held uuid[];
  refused_licenses uuid[];
  refused_machines bytea[];
begin
  select array_agg(distinct m.license_id) into concerned
  from unnest(license_ids, machine_ids) as u (license_id, machine_id)
    join machines m on m.license_id = u.license_id and m.machine_id = u.machine_id
  where (m.lease_ends_at is null or m.lease_ends_at > now()) and (m.file_ends_at is null or m.file_ends_at <= now());
  if concerned is null then
    return query select 'unknown', null::integer, null::text from unnest(license_ids);
    return;
  end if;
  perform ensure_partition('activity', now());
  select array_agg(id) into held from (select license_id as id from license_slots
    where license_id = any (concerned) order by license_id for no key update skip locked) locked;
  -- A new statement has a new snapshot, which includes the commits of the former holders of the locks.
  if exists (select from licenses l where l.id = any (held) and l.max_releases is not null) then
    delete from slot_releases where license_id = any (held) and at <= now() - interval '30 days';
    with holding as (
      select u.license_id, u.machine_id, row_number() over (partition by u.license_id order by min(u.i)) as place
      from unnest(license_ids, machine_ids) with ordinality as u (license_id, machine_id, i)
        join machines m on m.license_id = u.license_id and m.machine_id = u.machine_id
      where u.license_id = any (held) and (m.lease_ends_at is null or m.lease_ends_at > now())
        and (m.file_ends_at is null or m.file_ends_at <= now())
      group by u.license_id, u.machine_id
    ), judged as (
      select h.*, h.place > l.max_releases - (select count(*) from slot_releases r where r.license_id = h.license_id) as is_refused
      from holding h join licenses l on l.id = h.license_id where l.max_releases is not null
    ), counted as (
      insert into slot_releases (license_id) select license_id from judged where not is_refused
    )
    select array_agg(license_id), array_agg(machine_id) into refused_licenses, refused_machines from judged where is_refused;
    if refused_licenses is not null then
      perform record_release_limits(refused_licenses, refused_machines);
    end if;
  end if;
  return query
  with refused as (
    select * from unnest(refused_licenses, refused_machines) as r (license_id, machine_id)
  ), asked as (
    select u.*, row_number() over (partition by u.license_id, u.machine_id order by u.i) = 1 as is_first
    from unnest(license_ids, machine_ids) with ordinality as u (license_id, machine_id, i)
  ), gone as (
    delete from machines m using asked a
    where a.is_first and a.license_id = any (held) and m.license_id = a.license_id and m.machine_id = a.machine_id
      and (m.lease_ends_at is null or m.lease_ends_at > now()) and (m.file_ends_at is null or m.file_ends_at <= now())
      and not exists (select from refused r where r.license_id = a.license_id and r.machine_id = a.machine_id)
    returning m.license_id, m.machine_id
  ), noted as (
    insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
    select now(), new_id(), l.organization_id, l.id, 'MACHINE_RELEASED', g.machine_id, now(), now(), released_by
    from gone g join licenses l on l.id = g.license_id
  ), losses as (
    select g.license_id, count(*)::integer as machines from gone g group by g.license_id
  ), judged as (
    select a.i, a.license_id, case
        when g.license_id is not null and a.is_first then 'released'
        when a.license_id = any (concerned) and (held is null or a.license_id <> all (held)) then 'busy'
        else 'unknown'
      end as outcome
    from asked a left join gone g on g.license_id = a.license_id and g.machine_id = a.machine_id
  )
  select j.outcome, case when j.outcome = 'released' then s.used - l.machines end,
    case when j.outcome = 'released' then pg_current_xact_id()::text end
  from judged j
  left join license_slots s on s.license_id = j.license_id
  left join losses l on l.license_id = j.license_id
  order by j.i;
end $$;

-- Releases slots for apps.
create or replace function release_slots(license_ids uuid[], machine_ids bytea[])
  returns table (outcome text, used integer, xid text) language sql
  security definer set search_path = public, pg_temp as $$
  select * from release_slots(license_ids, machine_ids, null);
$$;
