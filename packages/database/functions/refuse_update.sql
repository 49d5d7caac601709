-- Rejects a change of a machine's license or machine id, which would bypass the slots.
create or replace function refuse_update() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  raise exception 'A machine keeps its license and its machine id; delete it and insert another';
end $$;
