-- Records of checks, the audit log, and stored responses for idempotency. Records contain no address or country of a
-- check.

-- Counts of checks per organization, product, code and hour. `product_id` is null for checks of unknown keys.
create table check_counts (
  hour timestamptz not null,
  organization_id uuid not null,
  product_id uuid,
  code text not null,
  count bigint not null,
  constraint check_counts_key unique nulls not distinct (hour, organization_id, product_id, code)
) partition by range (hour);

-- The activity feed. Checks are aggregated per license, code, machine and minute, and `at` is the minute. Changes of a
-- license and of its machines are separate entries. Their `count` is 1, and `at` is the time of the change.
create table activity (
  at timestamptz not null,
  id uuid not null,
  organization_id uuid not null,
  license_id uuid not null,
  type text not null,
  code text,
  machine_id bytea,
  count bigint not null default 1,
  first_at timestamptz not null,
  last_at timestamptz not null,
  actor jsonb,
  primary key (at, id)
) partition by range (at);
create unique index activity_coalesced on activity (at, license_id, code, machine_id) nulls not distinct where type = 'CHECK';
create index activity_license on activity (license_id, id);
create index activity_organization on activity (organization_id, id);

create table alerts (
  id uuid primary key,
  organization_id uuid not null,
  -- Refers to `license_slots`, so that raising an alert does not wait for a transaction that has locked the license.
  license_id uuid not null references license_slots on delete cascade,
  kind text not null default 'OVERUSE' check (kind = 'OVERUSE'),
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  acknowledged_at timestamptz
);
create unique index alerts_open on alerts (license_id, kind) where acknowledged_at is null;
create index alerts_listing on alerts (organization_id, id);

-- The number of each validator's last flush, written in the statement that applies the flush, so that a retry changes
-- nothing.
create table flushes (
  validator_id uuid primary key,
  number bigint not null,
  at timestamptz not null default now()
);

create table audit_log (
  id uuid primary key,
  organization_id uuid,
  at timestamptz not null default now(),
  actor jsonb not null,
  action text not null,
  resource_type text not null,
  resource_id uuid,
  changes jsonb
);
create index audit_log_listing on audit_log (organization_id, id);

create table idempotency_keys (
  owner text not null, -- the credential that sent the key
  key text not null,
  request_hash bytea not null,
  status integer, -- null: the first request is still running
  headers jsonb,
  body jsonb,
  created_at timestamptz not null default now(),
  primary key (owner, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- Used by rate-limiter-flexible, which defines the columns.
create table rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);

-- Every running validator, with the last snapshot of the change log that it has applied.
create table validators (
  id uuid primary key,
  name text not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  applied text, -- a pg_snapshot; null until the index is loaded
  ready boolean not null default false,
  details jsonb not null default '{}'
);
