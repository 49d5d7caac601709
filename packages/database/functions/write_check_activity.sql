-- Adds checks to the activity, one row per license, code, machine and minute.
create or replace function write_check_activity(minutes float8[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[],
    firsts float8[], lasts float8[]) returns void language sql set search_path = public, pg_temp as $$
  insert into activity (at, id, organization_id, license_id, type, code, machine_id, count, first_at, last_at)
  select date_trunc('minute', sane_time(to_timestamp(r.minute / 1000))), new_id(), l.organization_id, l.id, 'CHECK', r.code,
    r.machine, sum(r.count), sane_time(to_timestamp(min(r.first) / 1000)), sane_time(to_timestamp(max(r.last) / 1000))
  from unnest(minutes, license_ids, codes, machine_ids, counts, firsts, lasts)
      as r (minute, license, code, machine, count, first, last)
    join licenses l on l.id = r.license
  group by 1, l.organization_id, l.id, r.code, r.machine order by 1, l.id, r.code, r.machine
  on conflict (at, license_id, code, machine_id) where type = 'CHECK' do update set count = activity.count + excluded.count,
    first_at = least(activity.first_at, excluded.first_at), last_at = greatest(activity.last_at, excluded.last_at);
$$;
