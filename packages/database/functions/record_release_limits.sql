-- Records that an app may release no further slot, in one entry per license, machine and day. The id is computed from these three, so
-- repeated requests on the same day are counted in one entry.
create or replace function record_release_limits(license_ids uuid[], machine_ids bytea[]) returns void language sql
  set search_path = public, pg_temp as $$
  insert into activity (at, id, organization_id, license_id, type, machine_id, count, first_at, last_at)
  select day, (lpad(to_hex((extract(epoch from day) * 1000)::bigint), 12, '0') || '7' || left(digest, 3) || '8'
    || substr(digest, 4, 15))::uuid, l.organization_id, l.id, 'RELEASE_LIMIT_REACHED', u.machine_id, 1, now(), now()
  from unnest(license_ids, machine_ids) as u (license_id, machine_id)
    join licenses l on l.id = u.license_id,
    date_trunc('day', now(), 'UTC') as day,
    encode(sha256('release'::bytea || uuid_send(u.license_id) || u.machine_id), 'hex') as digest
  on conflict (at, id) do update set count = activity.count + 1, last_at = excluded.last_at;
$$;
