-- Partitions by time: activity by week, counts of checks by month, both in UTC. A writer requests the partition that it
-- needs, which creates a missing partition. So no scheduled job is needed.

create function partition_unit(parent text) returns text language sql immutable as $$
  select case parent when 'activity' then 'week' when 'check_counts' then 'month' end $$;

-- Returns `at`, or the current time if `at` is more than 400 days away, so that a wrong clock creates no distant
-- partitions.
create function sane_time(at timestamptz) returns timestamptz language sql stable as $$
  select case when at between now() - interval '400 days' and now() + interval '400 days' then at else now() end $$;

-- Creates the partition as a separate table and then attaches it, which blocks neither readers nor writers. Call it before
-- locking any row, because it may wait for another call that creates the same partition.
create function ensure_partition(parent text, at timestamptz) returns void language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  unit text := partition_unit(parent);
  begins timestamp := date_trunc(unit, at at time zone 'UTC');
  ends timestamp := begins + ('1 ' || unit)::interval;
  name text := format('%s_%s', parent, to_char(begins, 'YYYY_MM_DD'));
begin
  if to_regclass(name) is not null then
    -- Another session may have created the partition in an open transaction. Waits until that transaction releases its
    -- lock.
    perform pg_advisory_lock_shared(hashtext('ensure_partition'), hashtext(parent));
    perform pg_advisory_unlock_shared(hashtext('ensure_partition'), hashtext(parent));
    return;
  end if;
  perform pg_advisory_xact_lock(hashtext('ensure_partition'), hashtext(parent));
  -- Reads pg_class instead of calling to_regclass again, because waiting for the lock does not refresh the cache of
  -- to_regclass.
  if not exists (select from pg_class where relname = name and relnamespace = 'public'::regnamespace) then
    execute format('create table %I (like %I including all)', name, parent);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)',
      parent, name, begins at time zone 'UTC', ends at time zone 'UTC');
  end if;
end $$;

-- Drops the partitions whose rows are all older than the given ages, and returns their names. Skips a partition that is
-- locked.
create function drop_old_partitions(activity_days integer, analytics_days integer) returns setof text language plpgsql
  security definer set search_path = public, pg_temp set lock_timeout = '250ms' as $$
declare
  old record;
begin
  for old in
    select c.relname as name
    from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
    where p.oid in ('activity'::regclass, 'check_counts'::regclass) and c.relname ~ '_\d{4}_\d\d_\d\d$'
      and to_date(right(c.relname, 10), 'YYYY_MM_DD') + ('1 ' || partition_unit(p.relname))::interval
        < (now() at time zone 'UTC') - make_interval(days => case p.relname when 'activity' then activity_days else analytics_days end)
  loop
    begin
      execute format('drop table %I', old.name);
      return next old.name;
    exception when lock_not_available then null;
    end;
  end loop;
end $$;

select ensure_partition('activity', now()), ensure_partition('check_counts', now());

-- Returns a UUIDv7, for rows that the database creates.
create function new_id() returns uuid language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
    placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid $$;

-- Records an activity other than a check: a change of licenses, or a machine that was added or released.
create function record_activity(licenses_changed uuid[], kind text, machine bytea, acting jsonb) returns void language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform ensure_partition('activity', now());
  insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
  select now(), new_id(), l.organization_id, l.id, kind, machine, now(), now(), acting from licenses l where l.id = any (licenses_changed);
end $$;

revoke execute on function ensure_partition(text, timestamptz), drop_old_partitions(integer, integer),
  record_activity(uuid[], text, bytea, jsonb) from public;
