-- Claims many slots at once, starts the terms of licenses, and returns the outcomes in the order of the claims. The arrays have one element
-- per claim. A claim without a machine id only starts the term of a license without a machine limit. With `patient`, the call waits up to
-- half a second for locked rows and then fails. Use `patient` for a license that an earlier call has reported as busy. `features` lists the
-- features that the validator implements (`terms`, `leases`).
--   granted     the machine has a new slot
--   known       the machine already held a slot
--   limit       no slot is free, or the organization has reached its quota of machines; a limit over 100,000 counts as 100,000, and
--               machines that hold slots beyond that keep them
--   recorded    the license has no machine limit; the machine has been recorded
--   capped      the license has no machine limit, and the maximum number of machines of the license or 80 % of the quota of the
--               organization is recorded; this machine was only counted
--   started     the term of the license has started, for a claim without a machine id
--   expired     the term of the license and its grace period have ended
--   suspended, revoked   the status of the license; nothing was granted
--   no_license  the license does not exist
--   busy        a row of the license is locked, or the license needs a feature that is not in `features`; nothing was granted
-- `used` is the number of used slots after the call, and `max` the machine limit. `xid` is the id of the transaction. A snapshot of the
-- feed that includes the transaction also includes these claims. `ends_at` is the time at which the license expires, in milliseconds since
-- 1970, or null if it never expires. `lease` is the number of seconds for which a machine of a license with leases holds its slot from now
-- on. A machine whose lease has ended holds no slot, and its row is deleted before the claims are evaluated. The lease of a machine with a
-- file ends with the file, also if the license has no leases.
--
-- The rows of licenses whose terms start are locked before the rows of their slots. Changes of licenses use the same order. The function
-- inserts each machine with its organization, which a trigger would otherwise look up.
--
-- The counter of machines is summed only for organizations near their quota: those with a level of 80 % in `quota_levels`, which management
-- writes every ten seconds, and those with a quota below 2,000,000, which could be used up in that time. The counter is not locked, so
-- concurrent calls can exceed the quota by the machines that they add.
create or replace function claim_slots(license_ids uuid[], machine_ids bytea[], hostnames text[], patient boolean, features text[])
  returns table (outcome text, used integer, max integer, xid text, ends_at float8, lease integer) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  most_recorded constant integer := 10000;
  most_machines constant integer := 100000;
  small_quota constant integer := 2000000;
  starting uuid[];
  held uuid[];
  leased uuid[];
  near uuid[];
  rooms bigint[];
  rooms_without_limit bigint[];
begin
  perform ensure_partition('activity', now());
  if patient then
    select array_agg(id) into starting from (select l.id from licenses l
      where l.id = any (license_ids) and l.duration_days is not null and l.expires_at is null
      order by l.id for no key update) locked;
    select array_agg(id) into held from (select license_id as id from license_slots
      where license_id = any (license_ids) order by license_id for no key update) locked;
  else
    select array_agg(id) into starting from (select l.id from licenses l
      where l.id = any (license_ids) and l.duration_days is not null and l.expires_at is null
      order by l.id for no key update skip locked) locked;
    select array_agg(id) into held from (select license_id as id from license_slots
      where license_id = any (license_ids) order by license_id for no key update skip locked) locked;
  end if;
  -- New statements have new snapshots, which include the commits of the former holders of the locks.
  select array_agg(l.id) filter (where l.max_machines is not null and (l.lease_seconds is not null
      or exists (select from machines m where m.license_id = l.id and m.lease_ends_at is not null))),
    array_agg(distinct o.id) filter (where machine_quota(o.plan, o.quotas) < small_quota
      or exists (select from quota_levels v where v.organization_id = o.id and v.quota = 'machines' and v.percent >= 80))
  into leased, near from licenses l join organizations o on o.id = l.organization_id where l.id = any (held);
  if leased is not null and 'leases' = any (features) then
    perform renew_leases(leased, license_ids, machine_ids);
  end if;
  if near is not null then
    select array_agg(q.room order by q.i), array_agg(q.room - q.most * 2 / 10 order by q.i) into rooms, rooms_without_limit
    from (select n.i, machine_quota(o.plan, o.quotas) as most, machine_quota(o.plan, o.quotas) - (
        select coalesce(sum(c.used), 0) from organization_usage c where c.organization_id = o.id and c.quota = 'machines')::bigint as room
      from unnest(near) with ordinality as n (id, i) join organizations o on o.id = n.id) q;
  end if;
  return query
  with asked as (
    select u.*, row_number() over (partition by u.license_id, u.machine_id order by u.i) = 1 as is_first
    from unnest(license_ids, machine_ids, hostnames) with ordinality as u (license_id, machine_id, hostname, i)
  ), judged as (
    select a.*, l.organization_id, case when l.id = any (leased) then l.lease_seconds end as lease_seconds,
      case when l.max_machines > most_machines then most_machines else l.max_machines end as max_machines,
      least(coalesce(l.max_machines, most_recorded), most_machines) as cap, s.used,
      case when l.expires_at is null and l.duration_days is not null then term_end(l.duration_days) else l.expires_at end as expires_at,
      case
        when s.license_id is null then 'no_license'
        when held is null or a.license_id <> all (held) then 'busy'
        when l.status <> 'active' then l.status
        when l.expires_at is null and l.duration_days is not null
          and (starting is null or l.id <> all (starting) or not 'terms' = any (features)) then 'busy'
        when l.id = any (leased) and not 'leases' = any (features) then 'busy'
        when l.duration_days is not null and l.expires_at + make_interval(hours => 24 * l.grace_days) <= now() then 'expired'
        when a.machine_id is null then case when l.max_machines is null then 'started' else 'busy' end
        when m.license_id is not null then 'known'
      end as outcome
    from asked a
    left join licenses l on l.id = a.license_id
    left join license_slots s on s.license_id = a.license_id
    left join machines m on m.license_id = a.license_id and m.machine_id = a.machine_id
  ), newcomers as (
    select j.*, row_number() over (partition by j.license_id order by j.i) as place,
      row_number() over (partition by j.organization_id order by j.i) as turn
    from judged j where j.outcome is null and j.is_first
  ), granted as (
    select n.*, new_id() as id from newcomers n
    where n.used + n.place <= n.cap and (near is null or n.turn <= coalesce(
      (case when n.max_machines is null then rooms_without_limit else rooms end)[array_position(near, n.organization_id)], n.turn))
  ), gains as (
    select g.license_id, count(*) as machines from granted g group by g.license_id
  ), inserted as (
    insert into machines (id, license_id, organization_id, machine_id, hostname, lease_ends_at)
    select g.id, g.license_id, g.organization_id, g.machine_id, g.hostname, clock_timestamp() + make_interval(secs => g.lease_seconds)
    from granted g order by g.license_id, g.machine_id
    on conflict do nothing
  ), noted as (
    insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
    select now(), g.id, g.organization_id, g.license_id, 'MACHINE_ACTIVATED', g.machine_id, now(), now() from granted g
  ), counted as (
    update license_slots s set unrecorded = s.unrecorded + c.machines
    from (select n.license_id, count(*) as machines from newcomers n
      where n.max_machines is null and not exists (select from granted g where g.i = n.i) group by n.license_id) c
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
    pg_current_xact_id()::text,
    floor(extract(epoch from j.expires_at) * 1000)::float8,
    j.lease_seconds
  from judged j
  left join granted g on g.license_id = j.license_id and g.machine_id = j.machine_id
  left join gains on gains.license_id = j.license_id
  order by j.i;
  if starting is not null and 'terms' = any (features) then
    perform start_terms(array(select unnest(starting) intersect select unnest(held)), license_ids, machine_ids);
  end if;
end $$;
