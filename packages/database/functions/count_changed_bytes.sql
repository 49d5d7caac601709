-- Counts the bytes that an update adds to or removes from the metadata of a row. The metadata `{}` has the size 0.
create or replace function count_changed_bytes() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform add_bytes(array[new.organization_id], array[octet_length(nullif(new.metadata, '{}')::text)], null);
  perform add_bytes(array[new.organization_id], array[-octet_length(nullif(old.metadata, '{}')::text)], null);
  return null;
end $$;
