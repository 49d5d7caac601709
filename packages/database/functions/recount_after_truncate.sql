-- Counts all rows again after a table was truncated.
create or replace function recount_after_truncate() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform recount_usage();
  return null;
end $$;
