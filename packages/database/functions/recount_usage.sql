-- Counts all rows and bytes with a quota again, except the uses of a day. In a repeatable read transaction, the result is exact although
-- other transactions commit meanwhile: their rows in organization_usage are neither deleted nor contained in the new numbers.
create or replace function recount_usage() returns void language sql set search_path = public, pg_temp as $$
  delete from organization_usage where day is null;
  insert into organization_usage (organization_id, quota, used)
  select organization_id, 'licenses', count(*) from licenses group by 1
  union all select organization_id, 'products', count(*) from products group by 1
  union all select organization_id, 'customers', count(*) from customers group by 1
  union all select organization_id, quota_of_credential(kind), count(*) from credentials where revoked_at is null group by 1, 2
  union all select organization_id, 'members', count(*) from members group by 1
  union all select organization_id, 'accessRules', count(*) from access_rules group by 1
  union all select organization_id, 'signingKeys', count(*) from signing_keys group by 1
  union all select organization_id, 'ruleSets', count(*) from access_rule_sets group by 1
  union all select organization_id, 'webhookEndpoints', count(*) from webhook_endpoints group by 1
  union all select organization_id, 'portalSessions', count(*) from portal_sessions group by 1
  union all select organization_id, 'machines', count(*) from machines where organization_id is not null group by 1
  union all select organization_id, 'storedBytes', sum(bytes) from (
    select organization_id, bytes from audit_log where organization_id in (select id from organizations)
    union all select organization_id, bytes from events where organization_id in (select id from organizations)
    union all select organization_id, octet_length(metadata::text) from customers where metadata <> '{}'
    union all select organization_id, octet_length(metadata::text) from products where metadata <> '{}'
    union all select organization_id, octet_length(metadata::text) from licenses where metadata <> '{}'
    union all select organization_id, octet_length(metadata::text || former::text) from license_templates
    union all select organization_id, bytes from commerce_events
    union all select organization_id, 400 + 2 * octet_length(provider || order_id || line) from orders
    union all select organization_id, 200 + 2 * octet_length(provider || reference) from order_references
  ) stored group by 1 having sum(bytes) <> 0;
$$;
