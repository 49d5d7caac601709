-- Organizations (vendors), their members and credentials, and the keys that sign their offline license files.
-- Ids are UUIDv7, created by the program that inserts the row. They sort by their time of creation.

create table organizations (
  id uuid primary key,
  name text not null,
  plan text not null check (plan in ('FREE', 'LITE', 'STANDARD')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table members (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  email text not null,
  permissions text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create unique index members_email on members (organization_id, lower(email));

-- API keys, management tokens and personal access tokens. Only the SHA-256 of a secret is stored.
create table credentials (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  kind text not null check (kind in ('API_KEY', 'MANAGEMENT_TOKEN', 'ACCESS_TOKEN')),
  member_id uuid references members on delete cascade,
  name text not null,
  prefix text not null,
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  permissions text[] not null default '{}',
  expires_at timestamptz,
  revoked_at timestamptz,
  created_at timestamptz not null default now(),
  check ((kind = 'ACCESS_TOKEN') = (member_id is not null))
);
create index credentials_organization on credentials (organization_id, kind, id);
create index credentials_member on credentials (member_id) where member_id is not null;

-- The last use of each credential. Separate from `credentials`, so that recording a use wakes no validator.
create table credential_uses (
  credential_id uuid primary key references credentials on delete cascade,
  last_used_at timestamptz not null
);

create table signing_keys (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  key_id text not null,
  public_key bytea not null check (length(public_key) = 32),
  -- Encrypted with AES-256-GCM under the master key `master_key_id`; see services/management/src/keyring.
  private_key_encrypted bytea not null,
  master_key_id text not null,
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  withdrawn_at timestamptz,
  unique (organization_id, key_id)
);
create unique index signing_keys_current on signing_keys (organization_id) where retired_at is null;
