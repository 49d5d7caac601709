-- Sets the organization of a machine that a statement inserts without it.
create or replace function set_organization_of_machine() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  new.organization_id := (select organization_id from licenses where id = new.license_id);
  return new;
end $$;
