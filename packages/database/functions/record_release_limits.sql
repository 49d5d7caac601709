-- Records that an app may release no further slot, in one entry per license, machine and day. Repeated requests on the same day are counted
-- in one entry.
create or replace function record_release_limits(license_ids uuid[], machine_ids bytea[]) returns void language sql
  set search_path = public, pg_temp as $$
  insert into activity (at, id, organization_id, license_id, type, machine_id, count, first_at, last_at)
  select entry.at, entry.id, l.organization_id, l.id, 'RELEASE_LIMIT_REACHED', u.machine_id, 1, now(), now()
  from (select * from unnest(license_ids, machine_ids) as u (license_id, machine_id) order by license_id, machine_id) u
    join licenses l on l.id = u.license_id
    cross join lateral daily_entry(encode(sha256('release'::bytea || uuid_send(u.license_id) || u.machine_id), 'hex')) entry
  on conflict (at, id) do update set count = activity.count + 1, last_at = excluded.last_at;
$$;
