-- Returns the current day in UTC, for which daily quotas count.
create or replace function utc_day() returns date language sql stable set search_path = public, pg_temp as $$
  select (now() at time zone 'utc')::date $$;
