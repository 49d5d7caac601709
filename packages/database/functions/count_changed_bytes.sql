-- Counts the bytes that an update adds to or removes from the metadata of a row, and from the former values of a template. The metadata `{}`
-- has the size 0, except in a template.
create or replace function count_changed_bytes() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  if tg_table_name = 'license_templates' then
    perform add_bytes(array[new.organization_id],
      array[octet_length(new.metadata::text || new.former::text) - octet_length(old.metadata::text || old.former::text)], null);
  else
    perform add_bytes(array[new.organization_id], array[octet_length(nullif(new.metadata, '{}')::text)], null);
    perform add_bytes(array[new.organization_id], array[-octet_length(nullif(old.metadata, '{}')::text)], null);
  end if;
  return null;
end $$;
