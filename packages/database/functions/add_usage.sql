-- Adds to the usage of quotas, or subtracts from it. Skips organizations that are being deleted.
create or replace function add_usage(organizations uuid[], quotas text[], sign integer) returns void language sql
  set search_path = public, pg_temp as $$
  insert into organization_usage (organization_id, quota, used)
  select organization_id, quota, sign * count(*) from unnest(organizations, quotas) as c (organization_id, quota)
  where exists (select from organizations o where o.id = c.organization_id) group by organization_id, quota;
$$;
