-- Adds the slots of new licenses.
create or replace function add_license_slots() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into license_slots (license_id) select id from new_rows;
  return null;
end $$;
