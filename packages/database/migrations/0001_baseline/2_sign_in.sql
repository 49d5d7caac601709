-- Sign-in of people to the console: sessions, one-time invitations, passkeys (docs/api.md#a5) and OpenID Connect (docs/api.md#a7). Only the
-- SHA-256 of a secret is stored.

-- A session acts as its member, or as the operator. A session that was opened with an access token ends with the token and
-- has its permissions. `operator_seal` is the HMAC-SHA256 of the operator token that opened the session, with the session's
-- secret as the key. So the session ends when that token is replaced.
create table sessions (
  id uuid primary key,
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  organization_id uuid references organizations on delete cascade,
  member_id uuid references members on delete cascade,
  credential_id uuid references credentials on delete cascade,
  operator_seal bytea check (length(operator_seal) = 32),
  method text not null check (method in ('INVITATION', 'ACCESS_TOKEN', 'PASSKEY', 'OPERATOR_TOKEN', 'OPENID')),
  invited_by jsonb,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null,
  check ((member_id is null) = (operator_seal is not null)),
  check ((member_id is null) = (organization_id is null))
);
create index sessions_member on sessions (member_id) where member_id is not null;
create index sessions_organization on sessions (organization_id) where organization_id is not null;
create index sessions_credential on sessions (credential_id) where credential_id is not null;
create index sessions_expiry on sessions (expires_at);

-- A member has at most one invitation. Using an invitation deletes it.
create table invitations (
  member_id uuid primary key references members on delete cascade,
  organization_id uuid not null references organizations on delete cascade,
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  invited_by jsonb not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index invitations_organization on invitations (organization_id);
create index invitations_expiry on invitations (expires_at);

create table passkeys (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  member_id uuid not null references members on delete cascade,
  name text not null,
  credential_id bytea not null unique,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null default '{}',
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create index passkeys_member on passkeys (member_id);
create index passkeys_organization on passkeys (organization_id);

-- Challenges that a passkey must sign. Each challenge is accepted once. `member_id` is the member that registers a
-- passkey, or null for a sign-in.
create table passkey_challenges (
  challenge bytea primary key,
  member_id uuid references members on delete cascade,
  expires_at timestamptz not null
);
create index passkey_challenges_member on passkey_challenges (member_id) where member_id is not null;
create index passkey_challenges_expiry on passkey_challenges (expires_at);

-- Sign-ins that have begun. Each belongs to one browser, whose cookie contains the secret. `redeemed_at` is the time at which the response
-- of the identity provider was received; a second response is rejected. `email` is the verified address, and `issuer` and `subject` are the
-- verified account.
create table openid_attempts (
  secret_hash bytea primary key check (length(secret_hash) = 32),
  redeemed_at timestamptz,
  email text,
  expires_at timestamptz not null,
  issuer text,
  subject text
);
create index openid_attempts_expiry on openid_attempts (expires_at);
