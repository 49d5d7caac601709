-- Returns the result of `open_change_log_with` without opening the log.
create or replace function change_log_identity() returns text language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  return format('%s/%s', log_place(), left(pg_walfile_name(pg_current_wal_lsn()), 8));
end $$;
