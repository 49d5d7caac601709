-- The permissions of the services in the database. Services connect as users that are members of the group roles below. Every `migrate` runs
-- this file, because a role may have been created since, and because a copy of a database has the default privileges again. It only adds
-- permissions: a migration revokes a permission that no service of the previous version needs any more.

-- Creates the group roles. Roles belong to the whole server, so migrations of several databases may create a role at the same time.
do $$
declare
  group_role text;
begin
  foreach group_role in array array['keyward_validator', 'keyward_management'] loop
    if not exists (select from pg_roles where rolname = group_role) then
      begin
        execute format('create role %I nologin', group_role);
      exception
        when duplicate_object or unique_violation then null; -- created meanwhile by the migration of another database
        when insufficient_privilege then
          raise warning 'The role % does not exist and this user may not create it. Until an administrator runs '
            '"create role % nologin" and the database is migrated again, the service needs a user that owns the tables.',
            group_role, group_role;
          continue;
      end;
    end if;
    execute format('grant usage on schema %I to %I', current_schema(), group_role);
    execute format('grant select on migrations to %I', group_role);
    -- The keys with which the services authenticate each other.
    execute format('grant select (purpose, secret) on internal_keys to %I', group_role);
  end loop;
end $$;

-- Revokes the privileges that Postgres grants to PUBLIC by default. Functions of extensions keep their privileges.
do $$
declare
  own record;
begin
  for own in
    select p.oid::regprocedure as signature from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and pg_has_role(current_user, p.proowner, 'member')
      and has_function_privilege('public', p.oid, 'execute')
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
  loop
    execute format('revoke execute on function %s from public', own.signature);
  end loop;
  execute format('revoke temporary on database %I from public', current_database());
end $$;

-- A validator reads the columns that the index depends on, and calls the functions below. It cannot write a table.
do $$
begin
  if not exists (select from pg_roles where rolname = 'keyward_validator') then
    return;
  end if;
  grant select on change_log, feed_state to keyward_validator;
  grant select (id) on organizations to keyward_validator;
  grant select (id, organization_id, kind, secret_hash, expires_at, revoked_at, product_id) on credentials to keyward_validator;
  grant select (id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at, prepared_at, delegations)
    on signing_keys to keyward_validator;
  grant select (id, organization_id, entitlements) on products to keyward_validator;
  grant select (id, organization_id) on customers to keyward_validator;
  grant select (id, organization_id, product_id, customer_id, key, status, max_machines, expires_at, entitlements, duration_days,
    lease_seconds, grace_days, max_releases) on licenses to keyward_validator;
  grant select (license_id, used) on license_slots to keyward_validator;
  grant select (id, license_id, machine_id) on machines to keyward_validator;
  grant select (id, organization_id, kind, type, value, scope, scope_id, product_id, license_id, customer_id, expires_at,
    allow_suspended_or_expired, mode) on access_rules to keyward_validator;
  grant execute on function
    changes_after(pg_snapshot, uuid[], bigint),
    claim_slots(uuid[], bytea[], text[], boolean, text[]),
    forget_validator(uuid),
    landmark_of(uuid),
    note_validator(uuid, text, text, boolean, jsonb),
    open_change_log_with(text[]),
    prune_change_log(interval, integer),
    release_slots(uuid[], bytea[]),
    snap_covers(pg_snapshot, pg_snapshot),
    write_usage(uuid, bigint, jsonb, jsonb, jsonb, jsonb, jsonb, float8[], uuid[], text[], bytea[], integer[], float8[], float8[], boolean[])
    to keyward_validator;
end $$;

-- Management owns no object and cannot change the schema. It can write the change log only through the triggers.
do $$
begin
  if not exists (select from pg_roles where rolname = 'keyward_management') then
    return;
  end if;
  grant select, insert, update, delete on
    organizations, members, credentials, credential_uses, signing_keys, quota_levels,
    sessions, invitations, passkeys, passkey_challenges, openid_attempts,
    products, license_templates, license_jobs, license_job_rows, orders, order_references, commerce_connections, commerce_events, customers, merged_customers, licenses, machines,
    access_rule_sets, access_rules, access_rule_counters, folded_rules,
    event_schedules, webhook_endpoints, webhook_deliveries, webhook_attempts, webhook_workers, mails,
    alerts, idempotency_keys, portal_sessions, rate_limits
    to keyward_management;
  grant select, insert, delete on activity, audit_log, check_counts, events, event_marks, used_licenses to keyward_management;
  grant select, update on license_slots to keyward_management;
  grant select, update, delete on blacklisted_checks to keyward_management;
  grant select, delete on daily_entries, deleted_organizations, monitored_matches, occurrences to keyward_management;
  grant select on change_log, feed_state, organization_usage, slot_releases, validators to keyward_management;
  grant execute on function
    -- A check constraint and an index expression run as the user who writes the table.
    are_entitlements(jsonb, boolean),
    claim_slots(uuid[], bytea[], text[], boolean, text[]),
    customer_text(text, text, text),
    drop_old_partitions(integer, integer),
    ensure_partition(text, timestamptz),
    fold_usage(uuid, text),
    new_id(),
    record_activity(uuid, uuid[], text, bytea, jsonb),
    record_file_issued(uuid, uuid, bytea, jsonb),
    release_slots(uuid[], bytea[], jsonb),
    snap_covers(pg_snapshot, pg_snapshot),
    utc_day()
    to keyward_management;
end $$;
