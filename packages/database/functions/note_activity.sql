-- Stores an occurrence for the release of a machine and the start of a term. Activity with an actor is a change through the management API,
-- which writes its events itself.
create or replace function note_activity() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into occurrences (kind, organization_id, license_id, machine_id)
  values (new.type, new.organization_id, new.license_id, new.machine_id);
  return null;
end $$;
