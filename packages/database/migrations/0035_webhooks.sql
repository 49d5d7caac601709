-- Webhooks (docs/api.md#w3): endpoints of vendors, and the deliveries of events to them.

create table webhook_endpoints (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  url text not null,
  types text[] not null,
  description text,
  enabled boolean not null default true,
  disabled_reason text check (disabled_reason in ('GONE', 'FAILING')), -- null: enabled, or disabled by the vendor
  failing_since timestamptz, -- null: the last attempt succeeded, or there was none
  -- Both secrets are sealed under the master key. Deliveries are also signed with the previous secret until
  -- `previous_until`.
  secret_encrypted bytea not null,
  previous_encrypted bytea,
  previous_until timestamptz,
  master_key_id text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((previous_encrypted is null) = (previous_until is null))
);
create index webhook_endpoints_listing on webhook_endpoints (organization_id, id);

-- A delivery is one event for one endpoint. The statement that writes an event adds its deliveries, so both are
-- committed or neither. There are no foreign keys to the endpoint and the event, because their locks would make changes
-- of one vendor wait for each other.
create table webhook_deliveries (
  id uuid primary key,
  organization_id uuid not null,
  endpoint_id uuid not null,
  event_id uuid not null,
  event_type text not null,
  cause text not null check (cause in ('EVENT', 'RESEND', 'REPLAY', 'TEST')),
  status text not null default 'PENDING' check (status in ('PENDING', 'SUCCEEDED', 'FAILED')),
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(), -- null unless the delivery is pending
  worker uuid -- the worker that is attempting the delivery
);
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, next_attempt_at) where status = 'PENDING' and worker is null;
create index webhook_deliveries_claimed on webhook_deliveries (worker) where worker is not null;
create index webhook_deliveries_listing on webhook_deliveries (endpoint_id, id);
create index webhook_deliveries_organization on webhook_deliveries (organization_id);

create table webhook_attempts (
  delivery_id uuid not null references webhook_deliveries on delete cascade,
  number integer not null,
  at timestamptz not null,
  duration_ms integer not null,
  status integer, -- the HTTP status of the response, or null without a response
  error text,
  response text, -- the first 2 kB of the response
  primary key (delivery_id, number)
);

-- The processes that deliver events. A worker that was last seen some seconds ago counts as ended, and other workers
-- continue its deliveries.
create table webhook_workers (
  id uuid primary key,
  seen_at timestamptz not null default now()
);

create or replace function count_usage() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  counted text := case tg_table_name when 'access_rules' then 'accessRules' when 'signing_keys' then 'signingKeys'
    when 'access_rule_sets' then 'ruleSets' when 'webhook_endpoints' then 'webhookEndpoints' else tg_table_name end;
begin
  perform require_own_table(tg_table_schema);
  perform add_usage(array_agg(organization_id), array_agg(counted), case tg_op when 'INSERT' then 1 else -1 end) from changed;
  return null;
end $$;
alter function recount_usage() rename to recount_usage_before_webhooks;
create function recount_usage() returns void language sql set search_path = public, pg_temp as $$
  select recount_usage_before_webhooks();
  insert into organization_usage (organization_id, quota, used)
  select organization_id, 'webhookEndpoints', count(*) from webhook_endpoints group by 1;
$$;
create trigger webhook_endpoints_count_added after insert on webhook_endpoints
  referencing new table as changed for each statement execute function count_usage();
create trigger webhook_endpoints_count_deleted after delete on webhook_endpoints
  referencing old table as changed for each statement execute function count_usage();
create trigger webhook_endpoints_count_truncated after truncate on webhook_endpoints
  execute function recount_after_truncate();

-- Credentials and members with all earlier permissions get the new permission.
do $$
declare
  all_before constant text[] := '{licenses.read,licenses.write,products.read,products.write,customers.read,customers.write,analytics.read,audit.read,credentials.write,signing-keys.write,webhooks.read}';
begin
  update credentials set permissions = permissions || '{webhooks.write}'
  where permissions @> all_before and not permissions @> '{webhooks.write}';
  update members set permissions = permissions || '{webhooks.write}'
  where permissions @> all_before and not permissions @> '{webhooks.write}';
end $$;

-- Adds to the grants of earlier migrations.
alter function grant_management() rename to grant_management_before_webhooks;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_webhooks();
  if not exists (select from pg_roles where rolname = 'keyward_management') then
    return;
  end if;
  grant select, insert, update, delete on webhook_endpoints, webhook_deliveries, webhook_attempts, webhook_workers to keyward_management;
end $$;
