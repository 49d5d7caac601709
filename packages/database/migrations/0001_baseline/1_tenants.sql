-- Organizations (vendors), their members and credentials, and the keys that sign their offline license files.
-- Ids are UUIDv7, created by the program that inserts the row. They sort by their time of creation.

create table organizations (
  id uuid primary key,
  name text not null,
  plan text not null check (plan in ('FREE', 'LITE', 'STANDARD')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  quotas jsonb not null default '{}', -- the limits that the operator has changed, by name of the quota
  suspended_at timestamptz
);

create table members (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  email text not null,
  permissions text[] not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- The account with which the member has first signed in. The e-mail address finds the member only until then, because a provider may
  -- assign the address to another person later.
  openid_issuer text,
  openid_subject text,
  constraint members_openid_check check ((openid_issuer is null) = (openid_subject is null))
);
create unique index members_email on members (organization_id, lower(email));
create index members_by_email on members (lower(email));
create unique index members_openid on members (openid_issuer, openid_subject, organization_id) where openid_subject is not null;
create trigger unbind_openid before update of email on members for each row
  when (lower(old.email) <> lower(new.email)) execute function members_unbind_openid();

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
  created_by jsonb,
  -- The member whose access token created the credential, directly or through other credentials. The column keeps its value when the member
  -- is deleted.
  made_by_member uuid,
  -- There is no foreign key, because a revoked key keeps the id of its product after the product is deleted.
  product_id uuid constraint credentials_product check (kind = 'API_KEY' or product_id is null),
  check ((kind = 'ACCESS_TOKEN') = (member_id is not null))
);
create index credentials_organization on credentials (organization_id, kind, id);
create index credentials_valid on credentials (organization_id, kind, id) where revoked_at is null;
create index credentials_member on credentials (member_id) where member_id is not null;
create index credentials_made_by_member on credentials (organization_id, made_by_member) where made_by_member is not null;
create index credentials_product on credentials (product_id) where product_id is not null;
create index credentials_revoked on credentials (revoked_at) where revoked_at is not null;
create index credentials_revoked_by_organization on credentials (organization_id, revoked_at) where revoked_at is not null;
create trigger credentials_keep_product before update of product_id on credentials
  for each row when (old.product_id is distinct from new.product_id) execute function keep_product_of_key();

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
  -- A prepared key has never signed. Until the key becomes current, it has `retired_at` and `prepared_at`, so that validators list it and
  -- do not use it as the current key.
  prepared_at timestamptz,
  unique (organization_id, key_id)
);
create unique index signing_keys_current on signing_keys (organization_id) where retired_at is null;
create unique index signing_keys_prepared on signing_keys (organization_id) where prepared_at is not null and withdrawn_at is null;

-- Keys with which the services of one installation authenticate each other. Both services read them, and only the owner
-- writes them. To replace a key: update internal_keys set secret = default, changed_at = default where purpose = 'decide'.
create table internal_keys (
  purpose text primary key,
  -- Two random UUIDs have 244 random bits.
  secret text not null default encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex')
    check (length(secret) >= 32),
  changed_at timestamptz not null default now()
);
-- Management authenticates with the key `decide` when it requests the verdict of a check from a validator.
insert into internal_keys (purpose) values ('decide');

-- An organization's use of each quota is the sum of `used`. A trigger adds a row here for each statement that inserts or deletes counted
-- rows, so that concurrent transactions never wait for each other. `fold_usage` replaces the rows of a quota by their sum.
create table organization_usage (
  organization_id uuid not null,
  quota text not null,
  used bigint not null
);
create index organization_usage_quota on organization_usage (organization_id, quota);

-- The percentage in the last `quota.reached` event of each quota.
create table quota_levels (
  organization_id uuid not null references organizations on delete cascade,
  quota text not null,
  percent integer not null,
  primary key (organization_id, quota)
);

-- Deleted organizations whose remaining records must still be deleted when their retention ends.
create table deleted_organizations (
  id uuid primary key,
  deleted_at timestamptz not null default now()
);
create trigger organizations_noted_deleted after delete on organizations
  referencing old table as old_rows for each statement execute function note_deleted_organizations();
