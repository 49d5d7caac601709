-- Machine slots. A license's row in license_slots is the lock for its slots. Rows are locked in the order of their ids.
-- A batch skips locked rows instead of waiting for them, so that one locked license does not delay the others.
--
-- Plans are made once and use indexes. Planning each call would cost more than the claim, and a plan that was made for
-- small tables would still scan them after they have grown.

-- Claims many slots at once and returns the outcomes in the order of the claims. With `patient`, waits up to half a
-- second for locked rows and then fails. Use `patient` for a license that an earlier call has reported as busy.
--   granted     the machine has a new slot
--   known       the machine already had a slot
--   limit       no slot is free
--   recorded    the license has no limit; the machine has been recorded
--   capped      the license has no limit, but the maximum number of machines is recorded; this one was only counted
--   suspended, revoked   the status of the license; nothing was granted
--   no_license  the license does not exist
--   busy        the row of the license is locked; repeat the claim for this license alone, with `patient`
-- `used` is the count after the call. `xid` is the id of the transaction. A snapshot of the feed that includes the
-- transaction also includes these claims.
create function claim_slots(license_ids uuid[], machine_ids bytea[], hostnames text[], patient boolean)
  returns table (outcome text, used integer, max integer, xid text) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  most_recorded constant integer := 10000;
  held uuid[];
begin
  perform ensure_partition('activity', now());
  if patient then
    select array_agg(id) into held from (select license_id as id from license_slots
      where license_id = any (license_ids) order by license_id for no key update) locked;
  else
    select array_agg(id) into held from (select license_id as id from license_slots
      where license_id = any (license_ids) order by license_id for no key update skip locked) locked;
  end if;
  -- A new statement has a new snapshot, which includes the commits of the former holders of the locks.
  return query
  with asked as (
    select u.*, row_number() over (partition by u.license_id, u.machine_id order by u.i) = 1 as is_first
    from unnest(license_ids, machine_ids, hostnames) with ordinality as u (license_id, machine_id, hostname, i)
  ), judged as (
    select a.*, l.organization_id, l.max_machines, coalesce(l.max_machines, most_recorded) as cap, s.used,
      case
        when s.license_id is null then 'no_license'
        when held is null or a.license_id <> all (held) then 'busy'
        when l.status <> 'active' then l.status
        when m.license_id is not null then 'known'
      end as outcome
    from asked a
    left join licenses l on l.id = a.license_id
    left join license_slots s on s.license_id = a.license_id
    left join machines m on m.license_id = a.license_id and m.machine_id = a.machine_id
  ), newcomers as (
    select j.*, row_number() over (partition by j.license_id order by j.i) as place
    from judged j where j.outcome is null and j.is_first
  ), granted as (
    select n.*, new_id() as id from newcomers n where n.used + n.place <= n.cap
  ), gains as (
    select g.license_id, count(*) as machines from granted g group by g.license_id
  ), inserted as (
    insert into machines (id, license_id, machine_id, hostname)
    select g.id, g.license_id, g.machine_id, g.hostname from granted g order by g.license_id, g.machine_id
    on conflict do nothing
  ), noted as (
    insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
    select now(), g.id, g.organization_id, g.license_id, 'MACHINE_ACTIVATED', g.machine_id, now(), now() from granted g
  ), counted as (
    update license_slots s set unrecorded = s.unrecorded + c.machines
    from (select n.license_id, count(*) as machines from newcomers n
      where n.max_machines is null and n.used + n.place > n.cap group by n.license_id) c
    where s.license_id = c.license_id
  )
  select
    case
      when j.outcome is not null then j.outcome
      when g.license_id is null then case when j.max_machines is null then 'capped' else 'limit' end
      when not j.is_first then 'known'
      else case when j.max_machines is null then 'recorded' else 'granted' end
    end,
    case when j.outcome = 'busy' then null
      else (j.used + coalesce(gains.machines, 0))::integer end,
    case when j.outcome = 'busy' then null else j.max_machines end,
    pg_current_xact_id()::text
  from judged j
  left join granted g on g.license_id = j.license_id and g.machine_id = j.machine_id
  left join gains on gains.license_id = j.license_id
  order by j.i;
end $$;

-- Releases a machine's slot. A repeated call changes nothing. Waits up to half a second for a locked row, then fails.
create function release_slot(license uuid, machine bytea, acting jsonb)
  returns table (released boolean, used integer, max integer, xid text) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  gone boolean;
begin
  perform ensure_partition('activity', now());
  perform from license_slots s where s.license_id = license for no key update;
  delete from machines m where m.license_id = license and m.machine_id = machine;
  gone := found;
  if gone then
    perform record_activity(array[license], 'MACHINE_RELEASED', machine, acting);
  end if;
  return query
  select gone, coalesce(s.used, 0), l.max_machines, pg_current_xact_id()::text
  from (values (license)) as asked (id)
  left join license_slots s on s.license_id = asked.id left join licenses l on l.id = asked.id;
end $$;

revoke execute on function claim_slots(uuid[], bytea[], text[], boolean), release_slot(uuid, bytea, jsonb) from public;
