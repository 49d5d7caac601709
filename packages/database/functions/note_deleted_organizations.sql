-- Notes deleted organizations, whose remaining records are deleted when their retention ends.
create or replace function note_deleted_organizations() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into deleted_organizations (id) select id from old_rows on conflict do nothing;
  delete from organization_usage where organization_id in (select id from old_rows);
  return null;
end $$;
