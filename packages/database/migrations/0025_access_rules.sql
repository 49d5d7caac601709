-- Adds monitored rules, restrictions and sets to access rules. Changes of access rules wait for this migration, some
-- seconds with ten million rules. Checks continue.

alter table access_rules
  add column mode text not null default 'ENFORCE' check (mode in ('ENFORCE', 'MONITOR')),
  drop constraint access_rules_kind_check,
  add constraint access_rules_kind_check check (kind in ('BLACKLIST', 'EXCLUSION', 'RESTRICTION')),
  drop constraint access_rules_check3, -- the types of each kind
  add constraint access_rules_types check (case kind
    when 'EXCLUSION' then type in ('IP', 'HWID')
    when 'RESTRICTION' then type in ('IP', 'HWID', 'COUNTRY')
    else true end);

create index access_rules_monitored on access_rules (organization_id, id) where mode = 'MONITOR';

-- Sets of access rules, which are replaced as a whole. Every change of a set's rules, also a manual one, changes its
-- version.
create table access_rule_sets (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  name text not null check (length(name) between 1 and 64),
  version uuid not null default gen_random_uuid(),
  rules integer not null default 0, -- the number of its rules, including expired ones
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint access_rule_sets_name unique (organization_id, name),
  unique (organization_id, id)
);
alter table access_rules
  add column set_id uuid,
  add foreign key (organization_id, set_id) references access_rule_sets (organization_id, id) on delete cascade;
create index access_rules_set on access_rules (organization_id, set_id, id) where set_id is not null;

-- Changes the versions of sets. `changed` contains the rules after an insertion or update, and before a deletion.
create function version_sets() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
declare
  added integer := case tg_op when 'INSERT' then 1 when 'DELETE' then -1 else 0 end;
begin
  perform require_own_table(tg_table_schema);
  if exists (select from changed where set_id is not null) then
    perform from access_rule_sets where id in (select set_id from changed) order by id for no key update;
    update access_rule_sets s set version = gen_random_uuid(), updated_at = now(), rules = s.rules + added * c.rules
    from (select set_id, count(*)::integer as rules from changed where set_id is not null group by set_id) c
    where s.id = c.set_id;
  end if;
  return null;
end $$;
create trigger access_rules_sets_inserted after insert on access_rules
  referencing new table as changed for each statement execute function version_sets();
create trigger access_rules_sets_updated after update on access_rules
  referencing new table as changed for each statement execute function version_sets();
create trigger access_rules_sets_deleted after delete on access_rules
  referencing old table as changed for each statement execute function version_sets();

-- As before, and also counts sets.
create or replace function count_usage() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  counted text := case tg_table_name when 'access_rules' then 'accessRules' when 'access_rule_sets' then 'ruleSets'
    when 'signing_keys' then 'signingKeys' else tg_table_name end;
begin
  perform require_own_table(tg_table_schema);
  perform add_usage(array_agg(organization_id), array_agg(counted), case tg_op when 'INSERT' then 1 else -1 end) from changed;
  return null;
end $$;
alter function recount_usage() rename to recount_usage_before_sets;
create function recount_usage() returns void language sql set search_path = public, pg_temp as $$
  select recount_usage_before_sets();
  insert into organization_usage (organization_id, quota, used)
  select organization_id, 'ruleSets', count(*) from access_rule_sets group by 1;
$$;
create trigger access_rule_sets_count_added after insert on access_rule_sets
  referencing new table as changed for each statement execute function count_usage();
create trigger access_rule_sets_count_deleted after delete on access_rule_sets
  referencing old table as changed for each statement execute function count_usage();
create trigger access_rule_sets_count_truncated after truncate on access_rule_sets execute function recount_after_truncate();

-- Indexes for lists of rules by their matches. The update of the counters of a million rules takes some seconds, during
-- which validators keep their counts.
alter table access_rule_counters add column organization_id uuid;
update access_rule_counters c set organization_id = r.organization_id from access_rules r where r.id = c.rule_id;
create index access_rule_counters_count on access_rule_counters (organization_id, match_count, rule_id);
create index access_rule_counters_match
  on access_rule_counters (organization_id, (coalesce(last_matched_at, '-infinity'::timestamptz)), rule_id);
create or replace function add_rule_counters() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into access_rule_counters (rule_id, organization_id) select id, organization_id from new_rows;
  return null;
end $$;

select log_changes_of('access_rules', 'R', 'id, organization_id, kind, mode, type, value, scope, product_id, license_id, '
  'customer_id, expires_at, allow_suspended_or_expired');

-- Indexes for searches: by the beginning of a license key in any case and without blanks, by a part of a customer's email,
-- name or external id, and for entries of the audit log. Both extensions are part of Postgres and trusted, so the owner of
-- the database may create them.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;
create index licenses_key_search on licenses (organization_id, (upper(replace(key, ' ', '')) collate "C"));
create function customer_text(email text, name text, external_id text) returns text language sql immutable parallel safe as $$
  select lower(email || e'\n' || coalesce(name, '') || e'\n' || coalesce(external_id, '')) $$;
create index customers_search on customers using gin (organization_id, customer_text(email, name, external_id) gin_trgm_ops);

alter table audit_log add column before jsonb; -- the values that `changes` replaced
create index audit_log_action on audit_log (organization_id, action, id);
create index audit_log_resource_type on audit_log (organization_id, resource_type, id);
create index audit_log_resource on audit_log (organization_id, resource_id, id) where resource_id is not null;
create index audit_log_actor on audit_log (organization_id, (actor ->> 'id'), id);
create index alerts_unacknowledged on alerts (organization_id, id) where acknowledged_at is null;

-- Adds to the grants of earlier migrations.
alter function grant_validator() rename to grant_validator_before_modes;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_modes();
  if exists (select from pg_roles where rolname = 'keyward_validator') then
    grant select (mode) on access_rules to keyward_validator;
  end if;
end $$;

alter function grant_management() rename to grant_management_before_sets;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_sets();
  if exists (select from pg_roles where rolname = 'keyward_management') then
    grant select, insert, update, delete on access_rule_sets to keyward_management;
    grant execute on function customer_text(text, text, text) to keyward_management;
  end if;
end $$;
