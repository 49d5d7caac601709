-- Adds to the bytes of organizations: to `bytesPerDay` with a day, and to `storedBytes` without. Skips organizations that are being deleted.
create or replace function add_bytes(organizations uuid[], amounts integer[], counted_day date) returns void language sql
  set search_path = public, pg_temp as $$
  insert into organization_usage (organization_id, quota, used, day)
  select organization_id, case when counted_day is null then 'storedBytes' else 'bytesPerDay' end, sum(amount), counted_day
  from unnest(organizations, amounts) as c (organization_id, amount)
  where exists (select from organizations o where o.id = c.organization_id) group by organization_id having sum(amount) <> 0;
$$;
