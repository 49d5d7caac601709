-- Terms that start with the first use of a license, limits of releases by apps, and leases.

-- A license with `duration_days` and without `expires_at` has not started: its first VALID check sets `expires_at`.
alter table licenses
  add column duration_days integer,
  add column max_releases integer,
  add column lease_seconds integer,
  add constraint licenses_duration_days_check check (duration_days between 1 and 36500) not valid,
  add constraint licenses_max_releases_check check (max_releases between 0 and 1000) not valid,
  add constraint licenses_lease_seconds_check check (lease_seconds between 60 and 31622400) not valid,
  drop constraint licenses_check,
  add constraint licenses_term check ((policy_type = 'PERPETUAL') = (expires_at is null and duration_days is null)) not valid;

-- The end of a machine's lease, or null if the machine holds its slot until the release. A machine whose lease has
-- ended holds no slot, and the next claim of its license deletes the row.
alter table machines add column lease_ends_at timestamptz;

-- When a license with a machine limit gets `lease_seconds`, the machines that hold its slots get a lease. When leases
-- are removed, machines whose lease has not ended keep their slots without a lease.
create function change_leases() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform from license_slots where license_id = new.id for no key update;
  if new.lease_seconds is null or new.max_machines is null then
    delete from machines where license_id = new.id and lease_ends_at <= clock_timestamp();
    update machines set lease_ends_at = null where license_id = new.id and lease_ends_at is not null;
  else
    update machines set lease_ends_at = clock_timestamp() + make_interval(secs => new.lease_seconds)
    where license_id = new.id and lease_ends_at is null;
  end if;
  return null;
end $$;
create trigger licenses_leases after update of lease_seconds, max_machines on licenses for each row
  when ((old.lease_seconds is null or old.max_machines is null) is distinct from (new.lease_seconds is null or new.max_machines is null))
  execute function change_leases();

select log_changes_of('licenses', 'L',
  'id, organization_id, product_id, customer_id, key, status, max_machines, expires_at, entitlements, duration_days, lease_seconds');

-- Fails if a license needs a feature that is not in `features`, the features of the calling validator. A validator of
-- an earlier version would never expire a license whose term has not started, and would never end a lease.
create function require_features(features text[]) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if not 'terms' = any (features) and exists (select from licenses where duration_days is not null and expires_at is null) then
    raise exception 'Licenses use durationDays, which this version of the validator does not implement' using errcode = '0A000';
  end if;
  if not 'leases' = any (features) and exists (select from licenses where lease_seconds is not null and max_machines is not null) then
    raise exception 'Licenses use leaseSeconds, which this version of the validator does not implement' using errcode = '0A000';
  end if;
end $$;

-- Opens the change log like `open_change_log`, for a validator that implements the features.
create function open_change_log_with(features text[]) returns text language plpgsql security definer set search_path = public, pg_temp as $$
begin
  if pg_is_in_recovery() then
    raise exception 'This server is a standby; changes can only be followed on the primary' using errcode = '25006';
  end if;
  perform require_features(features);
  if (select server from feed_state) <> log_place() or not exists (select from server_run) then
    perform from feed_state for update;
    insert into server_run (id) select gen_random_uuid() where not exists (select from server_run);
    if (select server from feed_state) <> log_place() then
      perform void_change_log();
      update feed_state set server = log_place();
    end if;
  end if;
  return change_log_identity();
end $$;

create or replace function open_change_log() returns text language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  return open_change_log_with('{}');
end $$;

-- Claims slots, and starts the terms of licenses. Migration 0036 replaces this function and describes it.
create function claim_slots(license_ids uuid[], machine_ids bytea[], hostnames text[], patient boolean, features text[])
  returns table (outcome text, used integer, max integer, xid text, ends_at float8, lease integer) language plpgsql
  security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  most_recorded constant integer := 10000;
  most_machines constant integer := 100000;
  starting uuid[];
  held uuid[];
  leased uuid[];
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
  select array_agg(l.id) into leased from licenses l
  where l.id = any (held) and l.lease_seconds is not null and l.max_machines is not null;
  if leased is not null and 'leases' = any (features) then
    perform renew_leases(leased, license_ids, machine_ids);
  end if;
  return query
  with asked as (
    select u.*, row_number() over (partition by u.license_id, u.machine_id order by u.i) = 1 as is_first
    from unnest(license_ids, machine_ids, hostnames) with ordinality as u (license_id, machine_id, hostname, i)
  ), judged as (
    select a.*, l.organization_id, case when l.id = any (leased) then l.lease_seconds end as lease_seconds, case when l.max_machines > most_machines then most_machines else l.max_machines end as max_machines,
      least(coalesce(l.max_machines, most_recorded), most_machines) as cap, s.used,
      case when l.expires_at is null and l.duration_days is not null then term_end(l.duration_days) else l.expires_at end as expires_at,
      case
        when s.license_id is null then 'no_license'
        when held is null or a.license_id <> all (held) then 'busy'
        when l.status <> 'active' then l.status
        when l.expires_at is null and l.duration_days is not null
          and (starting is null or l.id <> all (starting) or not 'terms' = any (features)) then 'busy'
        when l.id = any (leased) and not 'leases' = any (features) then 'busy'
        when l.duration_days is not null and l.expires_at <= now() then 'expired'
        when a.machine_id is null then case when l.max_machines is null then 'started' else 'busy' end
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
    insert into machines (id, license_id, machine_id, hostname, lease_ends_at)
    select g.id, g.license_id, g.machine_id, g.hostname, clock_timestamp() + make_interval(secs => g.lease_seconds)
    from granted g order by g.license_id, g.machine_id
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

-- Deletes the machines whose lease has ended, and renews the leases of the claiming machines. The caller has already
-- locked the licenses' slots, so the time is read after the validator computed the end of the lease. So a lease never
-- ends earlier than the validator has computed. At most 2,000 machines are deleted, so that a claim is short. The
-- others count until the next claim.
create function renew_leases(leased uuid[], license_ids uuid[], machine_ids bytea[]) returns void language plpgsql
  set search_path = public, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  at timestamptz := clock_timestamp();
begin
  if exists (select from machines m where m.license_id = any (leased) and m.lease_ends_at <= at) then
    with ended as (
      delete from machines m where (m.license_id, m.machine_id) in (
        (select e.license_id, e.machine_id from machines e
          where e.license_id = any (leased) and e.lease_ends_at <= at limit 2000)
        union
        select e.license_id, e.machine_id from unnest(license_ids, machine_ids) as u (license_id, machine_id)
          join machines e on e.license_id = u.license_id and e.machine_id = u.machine_id
        where u.license_id = any (leased) and e.lease_ends_at <= at)
      returning m.license_id, m.machine_id
    )
    insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
    select now(), new_id(), l.organization_id, l.id, 'LEASE_ENDED', e.machine_id, now(), now()
    from ended e join licenses l on l.id = e.license_id;
  end if;
  update machines m set lease_ends_at = at + make_interval(secs => l.lease_seconds)
  from unnest(license_ids, machine_ids) as u (license_id, machine_id) join licenses l on l.id = u.license_id
  where u.license_id = any (leased) and l.status = 'active'
    and m.license_id = u.license_id and m.machine_id = u.machine_id and (m.lease_ends_at > at or m.lease_ends_at is null);
end $$;

-- As before, for validators of earlier versions.
create or replace function claim_slots(license_ids uuid[], machine_ids bytea[], hostnames text[], patient boolean)
  returns table (outcome text, used integer, max integer, xid text) language sql
  security definer set search_path = public, pg_temp as $$
  select outcome, used, max, xid from claim_slots(license_ids, machine_ids, hostnames, patient, '{}'::text[]) $$;

-- Returns the end of a term that starts with this transaction. A day has 24 hours. The end is in whole milliseconds, as
-- in the API.
create function term_end(days integer) returns timestamptz language sql stable set search_path = public, pg_temp as $$
  select date_trunc('milliseconds', now()) + make_interval(hours => 24 * days) $$;

-- Starts the terms of the locked licenses for which a claim is VALID. These are licenses without a limit, and licenses
-- of which a claiming machine now holds a slot.
create function start_terms(locked uuid[], license_ids uuid[], machine_ids bytea[]) returns void language sql
  set search_path = public, pg_temp as $$
  with started as (
    update licenses l set expires_at = term_end(l.duration_days), updated_at = now()
    where l.id = any (locked) and l.status = 'active' and l.duration_days is not null and l.expires_at is null
      and (l.max_machines is null or exists (
        select from unnest(license_ids, machine_ids) as u (license_id, machine_id)
          join machines m on m.license_id = u.license_id and m.machine_id = u.machine_id
        where u.license_id = l.id))
    returning l.id, l.organization_id
  )
  insert into activity (at, id, organization_id, license_id, type, first_at, last_at)
  select now(), new_id(), organization_id, id, 'TERM_STARTED', now(), now() from started;
$$;

-- The times at which apps released slots of licenses with `max_releases` in the last 30 days. A license never has more
-- rows than the largest `max_releases` that it has had.
create table slot_releases (
  license_id uuid not null references license_slots on delete cascade,
  at timestamptz not null default now()
);
create index slot_releases_license on slot_releases (license_id, at);

-- Records that an app may release no further slot, in one entry per license, machine and day. The id is computed from
-- these three, so repeated requests on the same day are counted in one entry.
create function record_release_limits(license_ids uuid[], machine_ids bytea[]) returns void language sql
  set search_path = public, pg_temp as $$
  insert into activity (at, id, organization_id, license_id, type, machine_id, count, first_at, last_at)
  select day, (lpad(to_hex((extract(epoch from day) * 1000)::bigint), 12, '0') || '7' || left(digest, 3) || '8'
    || substr(digest, 4, 15))::uuid, l.organization_id, l.id, 'RELEASE_LIMIT_REACHED', u.machine_id, 1, now(), now()
  from unnest(license_ids, machine_ids) as u (license_id, machine_id)
    join licenses l on l.id = u.license_id,
    date_trunc('day', now(), 'UTC') as day,
    encode(sha256('release'::bytea || uuid_send(u.license_id) || u.machine_id), 'hex') as digest
  on conflict (at, id) do update set count = activity.count + 1, last_at = excluded.last_at;
$$;

-- As before, with `max_releases`. Once apps have released that many slots of a license in the last 30 days, no further
-- slot is released. The machine keeps its slot, the outcome is `unknown`, and an entry of the activity records the
-- rejected release.
create or replace function release_slots(license_ids uuid[], machine_ids bytea[])
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
  where m.lease_ends_at is null or m.lease_ends_at > now();
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
      and (m.lease_ends_at is null or m.lease_ends_at > now())
      and not exists (select from refused r where r.license_id = a.license_id and r.machine_id = a.machine_id)
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

revoke execute on function require_features(text[]), record_release_limits(uuid[], bytea[]), change_leases(), renew_leases(uuid[], uuid[], bytea[]),
  open_change_log_with(text[]), term_end(integer), start_terms(uuid[], uuid[], bytea[]),
  claim_slots(uuid[], bytea[], text[], boolean, text[]) from public;

-- Adds to the grants of earlier migrations.
alter function grant_validator() rename to grant_validator_before_terms;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_terms();
  if exists (select from pg_roles where rolname = 'keyward_validator') then
    grant select (duration_days, lease_seconds) on licenses to keyward_validator;
    grant execute on function open_change_log_with(text[]), claim_slots(uuid[], bytea[], text[], boolean, text[]) to keyward_validator;
  end if;
end $$;
