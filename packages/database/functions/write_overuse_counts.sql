-- Opens the alert of each license whose checks exceeded its machine limit, or adds to it.
create or replace function write_overuse_counts(rows jsonb) returns void language sql set search_path = public, pg_temp as $$
  insert into alerts (id, organization_id, license_id, kind, count, first_at, last_at)
  select new_id(), l.organization_id, l.id, 'OVERUSE', sum(r.count),
    sane_time(to_timestamp(min(r.first) / 1000)), sane_time(to_timestamp(max(r.last) / 1000))
  from jsonb_to_recordset(rows) as r (license uuid, count bigint, first float8, last float8)
    join licenses l on l.id = r.license
  group by l.organization_id, l.id order by l.id
  on conflict (license_id, kind) where acknowledged_at is null do update set count = alerts.count + excluded.count,
    first_at = least(alerts.first_at, excluded.first_at), last_at = greatest(alerts.last_at, excluded.last_at);
$$;
