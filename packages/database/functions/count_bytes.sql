-- Counts the bytes that a statement adds to or deletes from the metadata, audit entries, events, orders and events of shops of organizations. Audit
-- entries, and events that callers cause, also count for the day. The constants are the sizes of a row and its index entries without texts.
create or replace function count_bytes() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  sign integer := case tg_op when 'INSERT' then 1 else -1 end;
begin
  perform require_own_table(tg_table_schema);
  if tg_table_name in ('audit_log', 'events') then
    perform add_bytes(array_agg(organization_id), array_agg(sign * bytes), null) from changed where bytes <> 0;
    if tg_op = 'DELETE' then
      return null;
    elsif tg_table_name = 'audit_log' then
      perform add_bytes(array_agg(organization_id), array_agg(bytes), utc_day()) from changed where bytes <> 0;
    else
      perform add_bytes(array_agg(organization_id), array_agg(bytes), utc_day()) from changed
      where bytes <> 0 and is_of_caller;
    end if;
  elsif tg_table_name = 'commerce_events' then
    perform add_bytes(array_agg(organization_id), array_agg(sign * bytes), null) from changed;
  elsif tg_table_name = 'license_templates' then
    perform add_bytes(array_agg(organization_id), array_agg(sign * octet_length(metadata::text || former::text)), null) from changed;
  elsif tg_table_name = 'orders' then
    perform add_bytes(array_agg(organization_id), array_agg(sign * (400 + 2 * octet_length(provider || order_id || line))), null) from changed;
  elsif tg_table_name = 'order_references' then
    perform add_bytes(array_agg(organization_id), array_agg(sign * (200 + 2 * octet_length(provider || reference))), null) from changed;
  else
    perform add_bytes(array_agg(organization_id), array_agg(sign * octet_length(metadata::text)), null) from changed
    where metadata <> '{}';
  end if;
  return null;
end $$;
