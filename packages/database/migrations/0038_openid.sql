-- Sign-in with OpenID Connect (docs/api.md#a7).

alter table sessions drop constraint sessions_method_check;
alter table sessions add constraint sessions_method_check
  check (method in ('INVITATION', 'ACCESS_TOKEN', 'PASSKEY', 'OPERATOR_TOKEN', 'OPENID')) not valid;

-- Sign-ins that have begun. Each belongs to one browser, whose cookie contains the secret. `redeemed_at` is the time at which the
-- response of the identity provider was received; a second response is rejected. `email` is the verified address.
create table openid_attempts (
  secret_hash bytea primary key check (length(secret_hash) = 32),
  redeemed_at timestamptz,
  email text,
  expires_at timestamptz not null
);
create index openid_attempts_expiry on openid_attempts (expires_at);

-- Adds to the grants of earlier migrations.
alter function grant_management() rename to grant_management_before_openid;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_openid();
  if not exists (select from pg_roles where rolname = 'keyward_management') then
    return;
  end if;
  grant select, insert, update, delete on openid_attempts to keyward_management;
end $$;
