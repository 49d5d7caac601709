-- Returns `at`, or the current time if `at` is more than 400 days away, so that a wrong clock creates no distant partitions.
create or replace function sane_time(at timestamptz) returns timestamptz language sql stable as $$
  select case when at between now() - interval '400 days' and now() + interval '400 days' then at else now() end $$;
