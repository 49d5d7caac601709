-- Counts the rows that a statement adds to or deletes from a table with a quota.
create or replace function count_usage() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  counted text := case tg_table_name when 'access_rules' then 'accessRules' when 'signing_keys' then 'signingKeys'
    when 'access_rule_sets' then 'ruleSets' when 'webhook_endpoints' then 'webhookEndpoints'
    when 'portal_sessions' then 'portalSessions' else tg_table_name end;
begin
  perform require_own_table(tg_table_schema);
  perform add_usage(array_agg(organization_id), array_agg(counted), case tg_op when 'INSERT' then 1 else -1 end) from changed;
  return null;
end $$;
