-- The usage that validators aggregate in memory and write about once a second. These writes wake no validator, because no
-- table below is logged.

-- Applies one batch exactly once: the number of the batch is compared and stored in the same transaction, so a batch
-- whose response was lost can be sent again. A validator numbers its batches in increasing order. Returns false if the
-- batch was applied before. Times are in milliseconds since 1970.
--   rules     [{id, count, at}]                              matches of access rules
--   checks    [{hour, organization, product, code, count}]   analytics; product may be null
--   the rest  one element for each entry of activity         its machine may be null; `seen`: whether the last time becomes
--                                                            `last_seen_at`; TOO_MANY_MACHINES also raises the alert
-- Rows whose rule, license, machine or organization was deleted are skipped. All validators write tables and rows in
-- the same order, so that no deadlock occurs. The call fails after waiting half a second for a locked row. Send the
-- batch again then.
create function write_behind(validator uuid, flush bigint, rules jsonb, checks jsonb, minutes float8[], license_ids uuid[],
    codes text[], machine_ids bytea[], counts integer[], firsts float8[], lasts float8[], seen boolean[])
  returns boolean language plpgsql security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  insert into flushes (validator_id, number) values (validator, flush)
  on conflict (validator_id) do update set number = excluded.number, at = now() where flushes.number < excluded.number;
  if not found then
    return false;
  end if;

  perform ensure_partition('check_counts', at), ensure_partition('activity', at)
  from (values (now()), (now() + interval '1 day')) as soon (at);
  perform ensure_partition('check_counts', at) from (
    select distinct sane_time(to_timestamp(hour / 1000)) as at from jsonb_to_recordset(checks) as r (hour float8)) needed;
  perform ensure_partition('activity', at) from (
    select distinct sane_time(to_timestamp(minute / 1000)) as at from unnest(minutes) as r (minute)) needed;

  perform write_rule_counts(rules);
  perform write_check_counts(checks);
  perform write_check_activity(minutes, license_ids, codes, machine_ids, counts, firsts, lasts);
  perform write_machines_seen(license_ids, machine_ids, lasts, seen);
  perform write_overuse(license_ids, codes, counts, firsts, lasts);
  return true;
end $$;

create function write_rule_counts(rows jsonb) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform from access_rule_counters
  where rule_id in (select id from jsonb_to_recordset(rows) as r (id uuid)) order by rule_id for no key update;
  update access_rule_counters c
  set match_count = c.match_count + m.count, last_matched_at = greatest(c.last_matched_at, m.at)
  from (
    select id, sum(count)::bigint as count, to_timestamp(max(at) / 1000) as at
    from jsonb_to_recordset(rows) as r (id uuid, count bigint, at float8) group by id
  ) m
  where c.rule_id = m.id;
end $$;

create function write_check_counts(rows jsonb) returns void language sql set search_path = public, pg_temp as $$
  insert into check_counts (hour, organization_id, product_id, code, count)
  select date_trunc('hour', sane_time(to_timestamp(hour / 1000)), 'UTC'), organization, product, code, sum(count)
  from jsonb_to_recordset(rows) as r (hour float8, organization uuid, product uuid, code text, count bigint)
  where exists (select from organizations o where o.id = organization)
  group by 1, 2, 3, 4 order by 1, 2, 3, 4
  on conflict (hour, organization_id, product_id, code) do update set count = check_counts.count + excluded.count;
$$;

create function write_check_activity(minutes float8[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[],
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

create function write_machines_seen(license_ids uuid[], machine_ids bytea[], moments float8[], seen boolean[]) returns void
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

create function write_overuse(license_ids uuid[], codes text[], counts integer[], firsts float8[], lasts float8[])
  returns void language sql set search_path = public, pg_temp as $$
  insert into alerts (id, organization_id, license_id, kind, count, first_at, last_at)
  select new_id(), l.organization_id, l.id, 'OVERUSE', sum(r.count),
    sane_time(to_timestamp(min(r.first) / 1000)), sane_time(to_timestamp(max(r.last) / 1000))
  from unnest(license_ids, codes, counts, firsts, lasts) as r (license, code, count, first, last)
    join licenses l on l.id = r.license
  where r.code = 'TOO_MANY_MACHINES'
  group by l.organization_id, l.id order by l.id
  on conflict (license_id, kind) where acknowledged_at is null do update set count = alerts.count + excluded.count,
    first_at = least(alerts.first_at, excluded.first_at), last_at = greatest(alerts.last_at, excluded.last_at);
$$;

-- Stores the heartbeat of a validator. The commit does not wait for the disk, because the next heartbeat follows in a
-- second.
create function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb)
  returns void language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into validators (id, name, applied, ready, details)
  values (validator, named, applied_snapshot, is_ready, more)
  on conflict (id) do update set name = excluded.name, applied = excluded.applied, ready = excluded.ready,
    details = excluded.details, seen_at = now();
end $$;

create function forget_validator(validator uuid) returns void language sql
  security definer set search_path = public, pg_temp as $$
  delete from validators where id = validator;
$$;

revoke execute on function
  write_behind(uuid, bigint, jsonb, jsonb, float8[], uuid[], text[], bytea[], integer[], float8[], float8[], boolean[]),
  note_validator(uuid, text, text, boolean, jsonb), forget_validator(uuid), write_rule_counts(jsonb), write_check_counts(jsonb),
  write_check_activity(float8[], uuid[], text[], bytea[], integer[], float8[], float8[]),
  write_machines_seen(uuid[], bytea[], float8[], boolean[]), write_overuse(uuid[], text[], integer[], float8[], float8[])
  from public;
