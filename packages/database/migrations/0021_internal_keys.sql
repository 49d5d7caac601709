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

-- Grants both services read access to their keys. Like the other grants, it runs with every migration.
create function grant_internal_keys() returns void language plpgsql set search_path = public, pg_temp as $$
declare
  service name;
begin
  for service in select rolname from pg_roles where rolname in ('keyward_validator', 'keyward_management') loop
    execute format('grant select (purpose, secret) on internal_keys to %I', service);
  end loop;
end $$;
