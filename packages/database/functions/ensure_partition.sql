-- Creates the partition as a separate table and then attaches it, which blocks neither readers nor writers. Call it before locking any row,
-- because it may wait for another call that creates the same partition. It waits only for locks of tables, which the role of validators
-- cannot lock. That role could hold an advisory lock for as long as it wants.
create or replace function ensure_partition(parent text, at timestamptz) returns void language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  unit text := partition_unit(parent);
  begins timestamp := date_trunc(unit, at at time zone 'UTC');
  ends timestamp := begins + ('1 ' || unit)::interval;
  name text := format('%s_%s', parent, to_char(begins, 'YYYY_MM_DD'));
  existing regclass := to_regclass(name);
begin
  if existing is not null then
    -- The new partition becomes visible shortly before this session is told to read the definition of its parent again. The creator keeps
    -- its lock of the partition until then. The function takes a lock of the table, and releases it at once.
    perform pg_relation_size(existing, 'init');
    return;
  end if;
  execute format('lock table %I in share update exclusive mode', parent);
  -- Reads pg_class instead of calling to_regclass again, because waiting for the lock does not refresh the cache of
  -- to_regclass.
  if not exists (select from pg_class where relname = name and relnamespace = 'public'::regnamespace) then
    execute format('create table %I (like %I including all)', name, parent);
    execute format('alter table %I attach partition %I for values from (%L) to (%L)',
      parent, name, begins at time zone 'UTC', ends at time zone 'UTC');
  end if;
end $$;
