-- Adds monitored rules, restrictions and sets to access rules. After the migrations, src/online-steps.ts creates the
-- indexes, validates the constraints and fills in the organization of counters.

alter table access_rules
  add column mode text not null default 'ENFORCE',
  add constraint access_rules_mode_check check (mode in ('ENFORCE', 'MONITOR')) not valid,
  drop constraint access_rules_kind_check,
  add constraint access_rules_kind_check check (kind in ('BLACKLIST', 'EXCLUSION', 'RESTRICTION')) not valid,
  drop constraint access_rules_check3, -- the types of each kind
  add constraint access_rules_types check (case kind
    when 'EXCLUSION' then type in ('IP', 'HWID')
    when 'RESTRICTION' then type in ('IP', 'HWID', 'COUNTRY')
    else true end) not valid;

-- Sets of access rules, which are replaced as a whole. Every change of a set's rules, including a manual change,
-- changes the version of the set.
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
  add foreign key (organization_id, set_id) references access_rule_sets (organization_id, id) on delete cascade not valid;

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

-- For listing rules by their matches. The column is null in older rows until src/online-steps.ts fills it in.
alter table access_rule_counters add column organization_id uuid;
create or replace function add_rule_counters() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into access_rule_counters (rule_id, organization_id) select id, organization_id from new_rows;
  return null;
end $$;

select log_changes_of('access_rules', 'R', 'id, organization_id, kind, mode, type, value, scope, product_id, license_id, '
  'customer_id, expires_at, allow_suspended_or_expired');

-- For searching customers by a part of their email, name or external id. Both extensions are part of Postgres and
-- trusted, so the owner of the database may create them.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;
create function customer_text(email text, name text, external_id text) returns text language sql immutable parallel safe as $$
  select lower(email || e'\n' || coalesce(name, '') || e'\n' || coalesce(external_id, '')) $$;

alter table audit_log add column before jsonb; -- the values that `changes` replaced

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
