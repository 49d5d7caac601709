-- The events `license.blacklisted` (docs/api.md#w1), and alerts about disabled webhook endpoints (docs/api.md#d4).

-- The checks of a license that ended in `BLACKLISTED` and are not in an event yet. A row becomes an event a minute after its first check was
-- written, so a license has at most one such event a minute.
create table blacklisted_checks (
  license_id uuid primary key,
  organization_id uuid not null,
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  since timestamptz not null default now()
);
create index blacklisted_checks_since on blacklisted_checks (since);
create index blacklisted_checks_organization on blacklisted_checks (organization_id);

-- Adds the blacklisted checks of a flush, only for organizations with an enabled endpoint that lists `license.blacklisted`. At most 100
-- licenses of an organization have a row, and further licenses are skipped. Validators that write at the same moment may exceed this number.
create function write_blacklisted(license_ids uuid[], codes text[], counts integer[], firsts float8[], lasts float8[]) returns void
  language plpgsql set search_path = public, pg_temp as $$
begin
  if not 'BLACKLISTED' = any (codes) then
    return;
  end if;
  insert into blacklisted_checks as b (license_id, organization_id, count, first_at, last_at)
  select license_id, organization_id, checks, first_at, last_at from (
    select n.*, k.license_id is not null as is_known, row_number() over (
      partition by n.organization_id, k.license_id is null order by n.license_id) as place
    from (
      select l.id as license_id, l.organization_id, sum(r.count) as checks,
        sane_time(to_timestamp(min(r.first) / 1000)) as first_at, sane_time(to_timestamp(max(r.last) / 1000)) as last_at
      from unnest(license_ids, codes, counts, firsts, lasts) as r (license_id, code, count, first, last)
        join licenses l on l.id = r.license_id
      where r.code = 'BLACKLISTED' and exists (select from webhook_endpoints e
        where e.organization_id = l.organization_id and e.enabled and 'license.blacklisted' = any (e.types))
      group by l.id
    ) n left join blacklisted_checks k on k.license_id = n.license_id
  ) m
  where is_known or place <= 100 - (select count(*) from blacklisted_checks o where o.organization_id = m.organization_id)
  order by license_id
  on conflict (license_id) do update set count = b.count + excluded.count, first_at = least(b.first_at, excluded.first_at),
    last_at = greatest(b.last_at, excluded.last_at);
end $$;

create or replace function write_usage(validator uuid, flush bigint, rules jsonb, checks jsonb, overuse jsonb, key_uses jsonb, hostnames jsonb,
    minutes float8[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[], firsts float8[], lasts float8[],
    seen boolean[])
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
  perform write_hostnames(hostnames);
  perform write_overuse_counts(overuse);
  perform write_key_uses(key_uses);
  perform write_blacklisted(license_ids, codes, counts, firsts, lasts);
  return true;
end $$;

-- An alert of the kind `WEBHOOK_DISABLED` is about an endpoint instead of a license. After the migrations, src/online-steps.ts creates the
-- index on `endpoint_id`.
alter table alerts
  alter column license_id drop not null,
  add column endpoint_id uuid references webhook_endpoints on delete cascade,
  drop constraint alerts_kind_check,
  add constraint alerts_kind_check check (kind in ('OVERUSE', 'WEBHOOK_DISABLED')) not valid,
  add constraint alerts_subject_check check (case kind when 'OVERUSE' then license_id else endpoint_id end is not null) not valid;
create or replace trigger alerts_noted_opened after insert on alerts for each row
  when (new.kind = 'OVERUSE') execute function note_alert();
create or replace trigger alerts_noted_again before update of count on alerts for each row
  when (new.kind = 'OVERUSE' and new.count > old.count and old.noted_at < now() - interval '1 hour')
  execute function note_alert();

-- Adds to the grants of earlier migrations.
alter function grant_management() rename to grant_management_before_blacklisted;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_blacklisted();
  if exists (select from pg_roles where rolname = 'keyward_management') then
    grant select, update, delete on blacklisted_checks to keyward_management;
  end if;
end $$;
