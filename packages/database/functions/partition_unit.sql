-- Returns the length of a partition: activity by week, counts of checks by month, both in UTC.
create or replace function partition_unit(parent text) returns text language sql immutable as $$
  select case parent when 'activity' then 'week' when 'check_counts' then 'month' end $$;
