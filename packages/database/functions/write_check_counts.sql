-- Adds to the counts of checks per hour.
create or replace function write_check_counts(rows jsonb) returns void language sql set search_path = public, pg_temp as $$
  insert into check_counts (hour, organization_id, product_id, code, count)
  select date_trunc('hour', sane_time(to_timestamp(hour / 1000)), 'UTC'), organization, product, code, sum(count)
  from jsonb_to_recordset(rows) as r (hour float8, organization uuid, product uuid, code text, count bigint)
  where exists (select from organizations o where o.id = organization)
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (hour, organization_id, product_id, code) do update set count = check_counts.count + excluded.count;
$$;
