-- Replaces the rows of a quota by their sum, and forgets the uses of past days. Concurrent calls neither conflict nor wait, because each call
-- replaces only the rows that it locks.
create or replace function fold_usage(organization uuid, folded text) returns void language sql
  security definer set search_path = public, pg_temp as $$
  with gone as (
    delete from organization_usage where ctid = any (array(
      select ctid from organization_usage where organization_id = organization and quota = folded for update skip locked))
    returning used, day
  )
  insert into organization_usage (organization_id, quota, used, day)
  select organization, folded, sum(used), day from gone where day is null or day >= utc_day() group by day having sum(used) <> 0;
$$;
