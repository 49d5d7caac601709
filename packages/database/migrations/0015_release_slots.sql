-- Releases many machines in one statement, and limits the number of machines of every license.
--
--   * Nothing is locked and no transaction id is assigned for a machine that does not exist. So the release of an unknown
--     machine costs a lookup in an index and no write.
--   * A statement commits and notifies once, however many machines it releases.
--   * A license has at most 100,000 machines, even if its limit is higher, because anyone with its key can create machines.

-- Releases slots and returns the outcomes in the order of the arguments.
--   released   the machine held a slot
--   unknown    the machine held no slot
--   busy       the row of the license is locked; repeat the call later
-- `used` is the count after the call, or null for the outcomes unknown and busy. `xid` is the id of the transaction, or
-- null if nothing was written.
create function release_slots(license_ids uuid[], machine_ids bytea[])
  returns table (outcome text, used integer, xid text) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  concerned uuid[];
  held uuid[];
begin
  select array_agg(distinct m.license_id) into concerned
  from unnest(license_ids, machine_ids) as u (license_id, machine_id)
    join machines m on m.license_id = u.license_id and m.machine_id = u.machine_id;
  if concerned is null then
    return query select 'unknown', null::integer, null::text from unnest(license_ids);
    return;
  end if;
  perform ensure_partition('activity', now());
  select array_agg(id) into held from (select license_id as id from license_slots
    where license_id = any (concerned) order by license_id for no key update skip locked) locked;
  -- A new statement has a new snapshot, which includes the commits of the former holders of the locks.
  return query
  with asked as (
    select u.*, row_number() over (partition by u.license_id, u.machine_id order by u.i) = 1 as is_first
    from unnest(license_ids, machine_ids) with ordinality as u (license_id, machine_id, i)
  ), gone as (
    delete from machines m using asked a
    where a.is_first and a.license_id = any (held) and m.license_id = a.license_id and m.machine_id = a.machine_id
    returning m.license_id, m.machine_id
  ), noted as (
    insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
    select now(), new_id(), l.organization_id, l.id, 'MACHINE_RELEASED', g.machine_id, now(), now()
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

-- As before, but locks nothing if the machine does not exist. Only validators of earlier versions call it.
create or replace function release_slot(license uuid, machine bytea, acting jsonb)
  returns table (released boolean, used integer, max integer, xid text) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  gone boolean := false;
begin
  if exists (select from machines m where m.license_id = license and m.machine_id = machine) then
    perform ensure_partition('activity', now());
    perform from license_slots s where s.license_id = license for no key update;
    delete from machines m where m.license_id = license and m.machine_id = machine;
    gone := found;
  end if;
  if gone then
    perform record_activity(array[license], 'MACHINE_RELEASED', machine, acting);
  end if;
  return query
  select gone, coalesce(s.used, 0), l.max_machines, case when gone then pg_current_xact_id()::text else '0' end
  from (values (license)) as asked (id)
  left join license_slots s on s.license_id = asked.id left join licenses l on l.id = asked.id;
end $$;

-- As before, with a maximum of 100,000 machines for every license, even if its limit is higher. Machines beyond the
-- maximum that already hold slots keep them.
create or replace function claim_slots(license_ids uuid[], machine_ids bytea[], hostnames text[], patient boolean)
  returns table (outcome text, used integer, max integer, xid text) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  most_recorded constant integer := 10000;
  most_machines constant integer := 100000;
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
    select a.*, l.organization_id, case when l.max_machines > most_machines then most_machines else l.max_machines end as max_machines,
      least(coalesce(l.max_machines, most_recorded), most_machines) as cap, s.used,
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

-- Grants the validator role its permissions: to read the columns that the index depends on, and to call the functions
-- below. Validators of earlier versions read whole rows. They may do so while the last heartbeat of any of them is less
-- than a minute old.
create or replace function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if not create_group_role('keyward_validator') then
    return;
  end if;
  if exists (select from validators where seen_at > now() - interval '1 minute' and not details ? 'readsColumns') then
    grant select on organizations, products, customers, licenses, license_slots, machines, access_rules to keyward_validator;
    raise warning 'A validator of an earlier version is running, so validators may still read whole rows. '
      'Migrate again when all validators run this version.';
  else
    revoke select on organizations, products, customers, licenses, license_slots, machines, access_rules
      from keyward_validator;
  end if;
  grant select (id) on organizations to keyward_validator;
  grant select (id, organization_id) on products, customers to keyward_validator;
  grant select (id, organization_id, product_id, customer_id, key, status, max_machines, expires_at) on licenses
    to keyward_validator;
  grant select (license_id, used) on license_slots to keyward_validator;
  grant select (license_id, machine_id) on machines to keyward_validator;
  grant select (id, organization_id, kind, type, value, scope, scope_id, product_id, license_id, customer_id, expires_at,
    allow_suspended_or_expired) on access_rules to keyward_validator;
  grant select on change_log, feed_state to keyward_validator;
  grant select (id, organization_id, kind, secret_hash, expires_at, revoked_at) on credentials to keyward_validator;
  grant select (id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at) on signing_keys
    to keyward_validator;
  grant execute on function changed_since(pg_snapshot), snap_covers(pg_snapshot, pg_snapshot),
    open_change_log(), prune_change_log(interval, integer),
    claim_slots(uuid[], bytea[], text[], boolean), release_slot(uuid, bytea, jsonb), release_slots(uuid[], bytea[]),
    write_behind(uuid, bigint, jsonb, jsonb, float8[], uuid[], text[], bytea[], integer[], float8[], float8[], boolean[]),
    note_validator(uuid, text, text, boolean, jsonb), forget_validator(uuid) to keyward_validator;
end $$;
