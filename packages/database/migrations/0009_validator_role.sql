-- The permissions of a validator in the database. It may only read the rows that a verdict needs and call the functions
-- below. `keyward_validator` is a role without login. Validators connect as a user that is a member of this role. Roles
-- belong to the whole server, so migrations of several databases may create the role at the same time.

create function grant_validator() returns void language plpgsql as $$
begin
  if not exists (select from pg_roles where rolname = 'keyward_validator') then
    begin
      create role keyward_validator nologin;
    exception
      when duplicate_object or unique_violation then null; -- created meanwhile by the migration of another database
      when insufficient_privilege then
        raise warning 'The role keyward_validator does not exist and this user may not create it. Until an administrator runs '
          '"create role keyward_validator nologin" and the database is migrated again, validators need a user that owns the tables.';
        return;
    end;
  end if;
  execute format('grant usage on schema %I to keyward_validator', current_schema());
  grant select on organizations, products, customers, licenses, license_slots, machines, access_rules,
    change_log, feed_state to keyward_validator;
  grant select (id, organization_id, kind, secret_hash, expires_at, revoked_at) on credentials to keyward_validator;
  grant select (id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at) on signing_keys to keyward_validator;
  grant execute on function open_change_log(), prune_change_log(interval, integer),
    claim_slots(uuid[], bytea[], text[], boolean), release_slot(uuid, bytea, jsonb),
    write_behind(uuid, bigint, jsonb, jsonb, float8[], uuid[], text[], bytea[], integer[], float8[], float8[], boolean[]),
    note_validator(uuid, text, text, boolean, jsonb), forget_validator(uuid) to keyward_validator;
end $$;
