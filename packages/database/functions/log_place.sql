-- Returns the identity of the server, the database, the log, and the run of the server since its last crash.
create or replace function log_place() returns text language plpgsql security definer set search_path = public, pg_temp as $$
declare
  system text;
begin
  begin
    select system_identifier::text into system from pg_control_system();
  exception when insufficient_privilege then -- on some managed servers
    system := '';
  end;
  return format('%s/%s/%s/%s', system, (select oid from pg_database where datname = current_database()),
    'change_log'::regclass::oid, (select string_agg(id::text, ' ' order by id) from server_run));
end $$;
