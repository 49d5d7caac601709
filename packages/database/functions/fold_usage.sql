-- Replaces the rows of a quota by their sum. Concurrent calls do not conflict, because each call replaces only the rows that it deletes.
create or replace function fold_usage(organization uuid, folded text) returns void language sql
  security definer set search_path = public, pg_temp as $$
  with gone as (
    delete from organization_usage where organization_id = organization and quota = folded returning used
  )
  insert into organization_usage (organization_id, quota, used)
  select organization, folded, sum(used) from gone having sum(used) <> 0;
$$;
