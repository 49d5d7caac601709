-- Events of an organization's resources (docs/api.md#w1), and their deliveries to webhook endpoints (docs/api.md#w3). The event of a change
-- is written in the transaction of the change.

-- `id` is a UUIDv7, and its milliseconds are the time of the event. `data` is stored as text, so it is returned unchanged.
create table events (
  id uuid primary key,
  organization_id uuid not null,
  type text not null,
  resource_id uuid, -- null for an event about many resources or none
  data json not null
);
create index events_listing on events (organization_id, id);
create index events_type on events (organization_id, type, id);
create index events_resource on events (organization_id, resource_id, id) where resource_id is not null;

-- Changes by validators that the management service has not yet turned into events. Triggers write them in the transaction of the change,
-- so the changes of validators of every version are recorded. `id` becomes the id of the event.
create table occurrences (
  id uuid primary key default new_id(),
  xid xid8 not null default pg_current_xact_id(),
  kind text not null,
  organization_id uuid, -- null when the changed row does not contain one
  license_id uuid, -- null in an occurrence about machines
  machine_id bytea,
  details jsonb,
  -- The machines that one statement adds or deletes, as columns with one element for each machine. They are null in an occurrence about a
  -- license. An occurrence for each machine would make a claim of 64 new machines use a fifth more CPU time. Arrays cost less than JSON
  -- when they are written.
  ids uuid[],
  license_ids uuid[],
  machine_ids bytea[],
  hostnames text[],
  first_seen timestamptz[],
  last_seen timestamptz[],
  lease_ends timestamptz[],
  -- The number of changes, by which batches of occurrences are limited.
  changes integer not null default 1
);
create index occurrences_xid on occurrences (xid);

-- The checks of a license that ended in `BLACKLISTED` and are not in an event yet. A row becomes an event a minute after its first check
-- was written, so a license has at most one such event a minute.
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

-- The progress of the scheduler. Every event that was due before `until` has been written.
create table event_schedules (
  name text primary key,
  until timestamptz not null
);
-- Events that the scheduler has written, so that it writes each event once. `mark` identifies the event and its due
-- time.
create table event_marks (
  resource_id uuid not null,
  mark text not null,
  due timestamptz not null,
  primary key (resource_id, mark)
);
create index event_marks_due on event_marks (due);

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
