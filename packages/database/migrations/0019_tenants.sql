-- Protects organizations from each other and from their own mistakes: counters for quotas, suspension, the creators of
-- credentials, prepared signing keys, and the indexes that retention needs.
--
-- Creating the indexes and triggers below blocks changes through the management API, for some seconds with ten million
-- rows. Checks and claims of slots are not blocked.

alter table organizations
  add column quotas jsonb not null default '{}', -- the limits that the operator has changed, by name of the quota
  add column suspended_at timestamptz;

-- An organization's use of each quota is the sum of `used`. A trigger adds a row here for each statement that inserts
-- or deletes counted rows, so that concurrent transactions never wait for each other. `fold_usage` replaces the rows of
-- a quota by their sum.
create table organization_usage (
  organization_id uuid not null,
  quota text not null,
  used bigint not null
);
create index organization_usage_quota on organization_usage (organization_id, quota);

-- Rows of an organization that is being deleted are not counted.
create function add_usage(organizations uuid[], quotas text[], sign integer) returns void language sql
  set search_path = public, pg_temp as $$
  insert into organization_usage (organization_id, quota, used)
  select organization_id, quota, sign * count(*) from unnest(organizations, quotas) as c (organization_id, quota)
  where exists (select from organizations o where o.id = c.organization_id) group by organization_id, quota;
$$;

create function count_usage() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  counted text := case tg_table_name when 'access_rules' then 'accessRules' when 'signing_keys' then 'signingKeys' else tg_table_name end;
begin
  perform require_own_table(tg_table_schema);
  perform add_usage(array_agg(organization_id), array_agg(counted), case tg_op when 'INSERT' then 1 else -1 end) from changed;
  return null;
end $$;

create function quota_of_credential(kind text) returns text language sql immutable set search_path = public, pg_temp as $$
  select case kind when 'API_KEY' then 'apiKeys' else 'tokens' end $$;

-- A revoked credential no longer counts, so its later deletion changes nothing.
create function count_credentials() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  if tg_op = 'INSERT' then
    perform add_usage(array_agg(organization_id), array_agg(quota_of_credential(kind)), 1) from changed where revoked_at is null;
  elsif tg_op = 'DELETE' then
    perform add_usage(array_agg(organization_id), array_agg(quota_of_credential(kind)), -1) from changed where revoked_at is null;
  else
    perform add_usage(array_agg(o.organization_id), array_agg(quota_of_credential(o.kind)), -1)
    from old_rows o join new_rows n on n.id = o.id where o.revoked_at is null and n.revoked_at is not null;
    perform add_usage(array_agg(o.organization_id), array_agg(quota_of_credential(o.kind)), 1)
    from old_rows o join new_rows n on n.id = o.id where o.revoked_at is not null and n.revoked_at is null;
  end if;
  return null;
end $$;

-- Concurrent calls do not conflict, because each call replaces only the rows that it deletes.
create function fold_usage(organization uuid, folded text) returns void language sql
  security definer set search_path = public, pg_temp as $$
  with gone as (
    delete from organization_usage where organization_id = organization and quota = folded returning used
  )
  insert into organization_usage (organization_id, quota, used)
  select organization, folded, sum(used) from gone having sum(used) <> 0;
$$;

-- Counts all rows again. Runs in this migration and after a table was truncated.
create function recount_usage() returns void language sql set search_path = public, pg_temp as $$
  delete from organization_usage;
  insert into organization_usage (organization_id, quota, used)
  select organization_id, 'licenses', count(*) from licenses group by 1
  union all select organization_id, 'products', count(*) from products group by 1
  union all select organization_id, 'customers', count(*) from customers group by 1
  union all select organization_id, quota_of_credential(kind), count(*) from credentials where revoked_at is null group by 1, 2
  union all select organization_id, 'members', count(*) from members group by 1
  union all select organization_id, 'accessRules', count(*) from access_rules group by 1
  union all select organization_id, 'signingKeys', count(*) from signing_keys group by 1;
$$;

create function recount_after_truncate() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform recount_usage();
  return null;
end $$;

do $$
declare
  counted text;
  count_function text;
begin
  foreach counted in array array['licenses', 'products', 'customers', 'members', 'access_rules', 'signing_keys', 'credentials']
  loop
    count_function := case counted when 'credentials' then 'count_credentials' else 'count_usage' end;
    execute format('create trigger %1$I after insert on %2$I referencing new table as changed
      for each statement execute function %3$I()', counted || '_count_added', counted, count_function);
    execute format('create trigger %1$I after delete on %2$I referencing old table as changed
      for each statement execute function %3$I()', counted || '_count_deleted', counted, count_function);
    execute format('create trigger %1$I after truncate on %2$I execute function recount_after_truncate()',
      counted || '_count_truncated', counted);
  end loop;
end $$;
create trigger credentials_count_updated after update on credentials
  referencing old table as old_rows new table as new_rows for each statement execute function count_credentials();

select recount_usage();

-- The creator of a credential. `made_by_member` is the member whose access token created the credential, directly or
-- through other credentials. The column keeps its value when the member is deleted.
alter table credentials
  add column created_by jsonb,
  add column made_by_member uuid;
create index credentials_made_by_member on credentials (organization_id, made_by_member) where made_by_member is not null;

-- Signing keys get a separate permission. Credentials and members that could already manage signing keys receive it.
update credentials set permissions = permissions || '{signing-keys.write}'
where 'credentials.write' = any (permissions) and not 'signing-keys.write' = any (permissions);
update members set permissions = permissions || '{signing-keys.write}'
where 'credentials.write' = any (permissions) and not 'signing-keys.write' = any (permissions);

-- A revoked API key leaves the index.
select log_changes_of('credentials', 'C', 'id, organization_id, secret_hash, expires_at, revoked_at',
  $$kind = 'API_KEY' and revoked_at is null$$);

-- A prepared key has never signed. Until the key becomes current, it has `retired_at` and `prepared_at`, so that
-- validators list it and do not use it as the current key.
alter table signing_keys add column prepared_at timestamptz;

-- Deleted organizations whose remaining records must still be deleted when their retention ends.
create table deleted_organizations (
  id uuid primary key,
  deleted_at timestamptz not null default now()
);

create function note_deleted_organizations() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into deleted_organizations (id) select id from old_rows on conflict do nothing;
  delete from organization_usage where organization_id in (select id from old_rows);
  return null;
end $$;
create trigger organizations_noted_deleted after delete on organizations
  referencing old table as old_rows for each statement execute function note_deleted_organizations();

create index access_rules_expiry on access_rules (expires_at) where expires_at is not null;
create index credentials_revoked on credentials (revoked_at) where revoked_at is not null;
create index credentials_revoked_by_organization on credentials (organization_id, revoked_at) where revoked_at is not null;
create index alerts_acknowledged on alerts (acknowledged_at) where acknowledged_at is not null;
create index merged_customers_age on merged_customers (merged_at);
create index folded_rules_age on folded_rules (folded_at);
-- For listing the actions of the operator, including actions on deleted organizations.
create index audit_log_operator on audit_log (id) where actor ->> 'type' = 'OPERATOR';

-- Records that a license file was issued, in one entry per license, machine and day. The id is computed from these
-- three, so another file on the same day updates the entry. `at` is the beginning of the day in UTC.
create function record_file_issued(organization uuid, license uuid, machine bytea, acting jsonb) returns void language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  day timestamptz := date_trunc('day', now(), 'UTC');
  digest text := encode(sha256(uuid_send(license) || coalesce('\x01'::bytea || machine, '\x00'::bytea)), 'hex');
  entry uuid := (lpad(to_hex((extract(epoch from day) * 1000)::bigint), 12, '0')
    || '7' || left(digest, 3) || '8' || substr(digest, 4, 15))::uuid;
begin
  perform ensure_partition('activity', day);
  insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
  select day, entry, l.organization_id, l.id, 'FILE_ISSUED', machine, now(), now(), acting
  from licenses l where l.id = license and l.organization_id = organization
  on conflict (at, id) do update set count = activity.count + 1, last_at = greatest(activity.last_at, excluded.last_at),
    actor = excluded.actor;
end $$;

-- Adds to the grants of earlier migrations.
alter function grant_management() rename to grant_management_before_tenants;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_tenants();
  if not exists (select from pg_roles where rolname = 'keyward_management') then
    return;
  end if;
  grant select on organization_usage to keyward_management;
  grant select, delete on deleted_organizations to keyward_management;
  grant execute on function fold_usage(uuid, text), record_file_issued(uuid, uuid, bytea, jsonb) to keyward_management;
end $$;
