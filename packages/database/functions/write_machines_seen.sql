-- Stores when machines were last seen. The stored time never becomes earlier.
create or replace function write_machines_seen(license_ids uuid[], machine_ids bytea[], moments float8[], seen boolean[]) returns void
  language plpgsql set search_path = public, pg_temp as $$
begin
  perform from machines m
  where (m.license_id, m.machine_id) in (
    select r.license, r.machine from unnest(license_ids, machine_ids, seen) as r (license, machine, is_seen) where r.is_seen)
  order by m.license_id, m.machine_id for no key update;
  update machines m set last_seen_at = s.at
  from (
    select r.license, r.machine, sane_time(to_timestamp(max(r.at) / 1000)) as at
    from unnest(license_ids, machine_ids, moments, seen) as r (license, machine, at, is_seen) where r.is_seen group by 1, 2
  ) s
  where m.license_id = s.license and m.machine_id = s.machine and m.last_seen_at < s.at;
end $$;
