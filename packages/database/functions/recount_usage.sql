-- Counts all rows with a quota again.
create or replace function recount_usage() returns void language sql set search_path = public, pg_temp as $$
  delete from organization_usage;
  insert into organization_usage (organization_id, quota, used)
  select organization_id, 'licenses', count(*) from licenses group by 1
  union all select organization_id, 'products', count(*) from products group by 1
  union all select organization_id, 'customers', count(*) from customers group by 1
  union all select organization_id, quota_of_credential(kind), count(*) from credentials where revoked_at is null group by 1, 2
  union all select organization_id, 'members', count(*) from members group by 1
  union all select organization_id, 'accessRules', count(*) from access_rules group by 1
  union all select organization_id, 'signingKeys', count(*) from signing_keys group by 1
  union all select organization_id, 'ruleSets', count(*) from access_rule_sets group by 1
  union all select organization_id, 'webhookEndpoints', count(*) from webhook_endpoints group by 1;
$$;
