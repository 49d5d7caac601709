-- Returns the end of a term that starts with this transaction. A day has 24 hours. The end is in whole milliseconds, as in the API.
create or replace function term_end(days integer) returns timestamptz language sql stable set search_path = public, pg_temp as $$
  select date_trunc('milliseconds', now()) + make_interval(hours => 24 * days) $$;
