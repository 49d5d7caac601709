-- Drops the partitions whose rows are all older than the given ages, and returns their names. Skips a partition that is locked.
create or replace function drop_old_partitions(activity_days integer, analytics_days integer) returns setof text language plpgsql
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
