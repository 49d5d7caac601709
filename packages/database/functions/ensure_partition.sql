-- Creates the partition as a separate table and then attaches it, which blocks neither readers nor writers. Call it before locking any row,
-- because it may wait for another call that creates the same partition.
create or replace function ensure_partition(parent text, at timestamptz) returns void language plpgsql
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
