-- Records of checks, the audit log, and stored responses for idempotency. Records contain no address or country of a
-- check. The patterns of codes and types keep a compromised validator from storing values that later break the management service.
--
-- A table that is partitioned by time gets each partition from `ensure_partition`, which a writer calls. So no scheduled job is needed.

-- Counts of checks per organization, product, code and hour. `product_id` is null for checks of unknown keys.
create table check_counts (
  hour timestamptz not null,
  organization_id uuid not null,
  product_id uuid,
  code text not null,
  count bigint not null,
  constraint check_counts_code check (code ~ '^[A-Z_]{1,40}$'),
  constraint check_counts_key unique nulls not distinct (hour, organization_id, product_id, code)
) partition by range (hour);
create index check_counts_organization on check_counts (organization_id, hour);

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
  constraint activity_code check (code ~ '^[A-Z_]{1,40}$'),
  constraint activity_type check (type ~ '^[A-Z_]{1,40}$'),
  primary key (at, id)
) partition by range (at);
create unique index activity_coalesced on activity (at, license_id, code, machine_id) nulls not distinct where type = 'CHECK';
create index activity_license on activity (license_id, id);
create index activity_organization on activity (organization_id, id);
create trigger activity_noted after insert on activity for each row
  when (new.actor is null and new.type in ('MACHINE_RELEASED', 'LEASE_ENDED', 'TERM_STARTED'))
  execute function note_activity();

select ensure_partition('activity', now()), ensure_partition('check_counts', now());

-- An alert of the kind `WEBHOOK_DISABLED` is about an endpoint instead of a license (docs/api.md#d4).
create table alerts (
  id uuid primary key,
  organization_id uuid not null,
  -- Refers to `license_slots`, so that raising an alert does not wait for a transaction that has locked the license.
  license_id uuid references license_slots on delete cascade,
  kind text not null default 'OVERUSE' check (kind in ('OVERUSE', 'WEBHOOK_DISABLED')),
  count bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  acknowledged_at timestamptz,
  -- An occurrence is stored when an alert opens, and then at most once an hour while checks exceed the limit.
  noted_at timestamptz not null default now(),
  endpoint_id uuid references webhook_endpoints on delete cascade,
  constraint alerts_subject_check check (case kind when 'OVERUSE' then license_id else endpoint_id end is not null)
);
create unique index alerts_open on alerts (license_id, kind) where acknowledged_at is null;
create index alerts_listing on alerts (organization_id, id);
create index alerts_unacknowledged on alerts (organization_id, id) where acknowledged_at is null;
create index alerts_acknowledged on alerts (acknowledged_at) where acknowledged_at is not null;
create index alerts_license on alerts (license_id);
create index alerts_endpoint on alerts (endpoint_id) where endpoint_id is not null;
create trigger alerts_noted_opened after insert on alerts for each row
  when (new.kind = 'OVERUSE') execute function note_alert();
create trigger alerts_noted_again before update of count on alerts for each row
  when (new.kind = 'OVERUSE' and new.count > old.count and old.noted_at < now() - interval '1 hour')
  execute function note_alert();

create table audit_log (
  id uuid primary key,
  organization_id uuid,
  at timestamptz not null default now(),
  actor jsonb not null,
  action text not null,
  resource_type text not null,
  resource_id uuid,
  changes jsonb,
  before jsonb -- the values that `changes` replaced
);
create index audit_log_listing on audit_log (organization_id, id);
create index audit_log_action on audit_log (organization_id, action, id);
create index audit_log_resource_type on audit_log (organization_id, resource_type, id);
create index audit_log_resource on audit_log (organization_id, resource_id, id) where resource_id is not null;
create index audit_log_actor on audit_log (organization_id, (actor ->> 'id'), id);
-- For listing the actions of the operator, including actions on deleted organizations.
create index audit_log_operator on audit_log (id) where actor ->> 'type' = 'OPERATOR';

create table idempotency_keys (
  owner text not null, -- the credential that sent the key
  key text not null,
  request_hash bytea not null,
  status integer, -- null: the first request is still running
  headers jsonb,
  body jsonb,
  created_at timestamptz not null default now(),
  organization_id uuid,
  bytes integer not null default 0,
  primary key (owner, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);
-- The number of bytes that an organization has stored in a day is the sum of `bytes`, which an index-only scan reads.
create index idempotency_keys_bytes on idempotency_keys (organization_id, created_at) include (bytes)
  where organization_id is not null;

-- Used by rate-limiter-flexible, which defines the columns. The counts last ten seconds. An unlogged table needs no commit record, so its
-- statements wait neither for the disk nor for synchronous standbys. The table is empty after a crash or a failover.
create unlogged table rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
