-- A shop whose signed events become orders (docs/api.md#b4).
create table commerce_connections (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  name text not null,
  shop text not null check (shop in ('stripe', 'paddle', 'polar', 'lemonsqueezy', 'fastspring')),
  mode text not null check (mode in ('live', 'test')),
  states text[] not null default '{paid,canceled,refunded,disputed}',
  unknown_prices text not null default 'wait' check (unknown_prices in ('wait', 'ignore')),
  secret_encrypted bytea not null,
  master_key_id text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index commerce_connections_listing on commerce_connections (organization_id, id);
create trigger commerce_connections_version before update on commerce_connections for each row execute function next_version();

-- The inbox of events. An event that has ended has no `next_attempt_at`. An event that waits for a price, an order or a customer has its id in
-- `waits_for`.
create table commerce_events (
  id uuid primary key,
  organization_id uuid not null,
  connection_id uuid not null references commerce_connections on delete cascade,
  event_id text not null,
  type text not null,
  body text not null,
  bytes integer not null,
  state text not null default 'PENDING' check (state in ('PENDING', 'WAITING', 'DONE', 'IGNORED', 'FAILED')),
  order_id text,
  attempts integer not null default 0,
  next_attempt_at timestamptz default now(),
  waits_for text[] not null default '{}',
  error text,
  received_at timestamptz not null default now(),
  handled_at timestamptz,
  unique (connection_id, event_id)
);
create index commerce_events_listing on commerce_events (connection_id, id);
create index commerce_events_due on commerce_events (organization_id, next_attempt_at) where next_attempt_at is not null;
create index commerce_events_waiting on commerce_events (organization_id) where state = 'WAITING';
create trigger commerce_events_bytes_added after insert on commerce_events referencing new table as changed
  for each statement execute function count_bytes();
create trigger commerce_events_bytes_deleted after delete on commerce_events referencing old table as changed
  for each statement execute function count_bytes();
create trigger commerce_events_bytes_truncated after truncate on commerce_events execute function recount_after_truncate();

-- Other ids by which a shop refers to an order, such as the id of a payment.
create table order_references (
  organization_id uuid not null references organizations on delete cascade,
  provider text not null,
  reference text not null,
  order_id text not null,
  primary key (organization_id, provider, reference)
);

-- An alert of the kind `EVENT_WAITING` is about a connection.
alter table alerts add column connection_id uuid references commerce_connections on delete cascade;
alter table alerts drop constraint alerts_kind_check, drop constraint alerts_subject_check;
alter table alerts
  add constraint alerts_kind_check check (kind in ('OVERUSE', 'WEBHOOK_DISABLED', 'EVENT_WAITING')) not valid,
  add constraint alerts_subject_check check (
    case kind when 'OVERUSE' then license_id when 'WEBHOOK_DISABLED' then endpoint_id else connection_id end is not null) not valid;
