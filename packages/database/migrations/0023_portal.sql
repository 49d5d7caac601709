-- The color of the vendor on the page of the portal.
alter table organizations add column accent_color text check (accent_color ~ '^#[0-9a-f]{6}$');

-- One row for each link of the portal. Until a browser opens the link, `secret_hash` is the hash of its code, and afterwards the hash of the
-- secret of the session. `acts` counts the changes of the session.
create table portal_sessions (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  customer_id uuid not null,
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  actions text[] not null check (actions <@ '{release,files}' and array_position(actions, null) is null),
  is_preview boolean not null,
  return_url text,
  acts integer not null default 0,
  created_at timestamptz not null default now(),
  opened_at timestamptz,
  expires_at timestamptz not null,
  foreign key (organization_id, customer_id) references customers (organization_id, id) on delete cascade
);
create index portal_sessions_customer on portal_sessions (organization_id, customer_id, created_at);
create index portal_sessions_expiry on portal_sessions (expires_at);
create trigger portal_sessions_count_added after insert on portal_sessions referencing new table as changed
  for each statement execute function count_usage();
create trigger portal_sessions_count_deleted after delete on portal_sessions referencing old table as changed
  for each statement execute function count_usage();
create trigger portal_sessions_count_truncated after truncate on portal_sessions
  for each statement execute function recount_after_truncate();
