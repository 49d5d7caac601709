-- Locks the slots of a license whose limit changes, so that the limit changes only while no claim of the license is in progress.
create or replace function lock_license_slots() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform from license_slots where license_id = new.id for no key update;
  return new;
end $$;
