-- Restricts every role to what it needs. Before this migration, the trigger functions ran as the owner of the tables, were
-- executable by everybody, and built statements from their arguments. So a user who could create a temporary table could
-- attach such a function to it and run statements as the owner.
--
--   * The text of every statement in a trigger function is fixed when the trigger is created, and no argument is read.
--   * Trigger functions fail for tables of other schemas.
--   * No function is executable by PUBLIC, including functions that later migrations create.
--   * No service may create temporary tables.

-- Creates the trigger functions and triggers that log the changes of a table. An update that changes none of the listed
-- columns is not logged. Migrations call it, and call it again when the columns change.
--   letter   the letter of the entity in change_log
--   columns  the columns that the index depends on, `id` first
--   rows     a condition for the rows that count
create function log_changes_of(logged_table text, letter text, columns text, rows text default 'true') returns void
  language plpgsql set search_path = public, pg_temp as $$
declare
  function_name text := format('log_changes_of_%s', logged_table);
begin
  execute format($sql$
    create or replace function %1$I() returns trigger language plpgsql
      security definer set search_path = public, pg_temp as $body$
    declare
      logged bigint;
    begin
      if tg_table_schema <> %6$L or tg_table_name <> %2$L then
        raise exception 'This function only logs changes of %2$s' using errcode = '42501';
      end if;
      if tg_op = 'INSERT' then
        insert into change_log (entity, id) select %3$L::"char", id from new_rows where %5$s;
      elsif tg_op = 'DELETE' then
        insert into change_log (entity, id) select %3$L::"char", id from old_rows where %5$s;
      else
        insert into change_log (entity, id) select distinct %3$L::"char", id from (
          (select %4$s from old_rows where %5$s except select %4$s from new_rows where %5$s) union all
          (select %4$s from new_rows where %5$s except select %4$s from old_rows where %5$s)) different;
      end if;
      get diagnostics logged = row_count;
      if logged > 0 then
        perform pg_notify('keyward_changes', '');
      end if;
      return null;
    end $body$ $sql$, function_name, logged_table, letter, columns, rows, current_schema());
  execute format('revoke execute on function %I() from public', function_name);
  execute format($sql$
    create or replace trigger %1$I after insert on %2$I referencing new table as new_rows
      for each statement execute function %3$I() $sql$, logged_table || '_inserted', logged_table, function_name);
  execute format($sql$
    create or replace trigger %1$I after update on %2$I referencing old table as old_rows new table as new_rows
      for each statement execute function %3$I() $sql$, logged_table || '_updated', logged_table, function_name);
  execute format($sql$
    create or replace trigger %1$I after delete on %2$I referencing old table as old_rows
      for each statement execute function %3$I() $sql$, logged_table || '_deleted', logged_table, function_name);
end $$;

select
  log_changes_of('organizations', 'O', 'id'),
  log_changes_of('credentials', 'C', 'id, organization_id, secret_hash, expires_at, revoked_at', $$kind = 'API_KEY'$$),
  log_changes_of('signing_keys', 'K', 'id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at'),
  log_changes_of('products', 'P', 'id, organization_id'),
  log_changes_of('customers', 'U', 'id, organization_id'),
  log_changes_of('licenses', 'L', 'id, organization_id, product_id, customer_id, key, status, max_machines, expires_at'),
  log_changes_of('access_rules', 'R', 'id, organization_id, kind, type, value, scope, product_id, license_id, customer_id, '
    'expires_at, allow_suspended_or_expired');

drop function log_changes();

-- Fails for a table of another schema, such as a temporary table. The trigger functions that read no arguments call it.
create function require_own_table(schema_name name) returns void language plpgsql
  set search_path = public, pg_temp as $$
begin
  if schema_name <> current_schema() then
    raise exception 'This function only serves tables of the schema %', current_schema() using errcode = '42501';
  end if;
end $$;

create or replace function log_machines() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform from license_slots where license_id in (select license_id from changed) order by license_id for no key update;
  update license_slots s set used = used + c.machines * case tg_op when 'INSERT' then 1 else -1 end
  from (select license_id, count(*)::integer as machines from changed group by license_id) c
  where s.license_id = c.license_id;
  insert into change_log (entity, id, machine_id) select 'M', license_id, machine_id from changed;
  if tg_op = 'DELETE' and found then
    perform pg_notify('keyward_changes', '');
  end if;
  return null;
end $$;

create or replace function log_truncate() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform void_change_log();
  return null;
end $$;

create or replace function add_license_slots() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into license_slots (license_id) select id from new_rows;
  return null;
end $$;

create or replace function lock_license_slots() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform from license_slots where license_id = new.id for no key update;
  return new;
end $$;

create or replace function add_rule_counters() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into access_rule_counters (rule_id) select id from new_rows;
  return null;
end $$;

-- A compromised validator must not be able to store values that later break the management service, or to remove log
-- entries that a validator has not read yet.
alter table check_counts add constraint check_counts_code check (code ~ '^[A-Z_]{1,40}$') not valid;
alter table activity add constraint activity_code check (code ~ '^[A-Z_]{1,40}$') not valid;
alter table activity add constraint activity_type check (type ~ '^[A-Z_]{1,40}$') not valid;

create or replace function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb)
  returns void language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform applied_snapshot::pg_snapshot; -- fails for an invalid snapshot
  perform set_config('synchronous_commit', 'off', true);
  insert into validators (id, name, applied, ready, details)
  values (validator, left(named, 200), applied_snapshot, is_ready, more)
  on conflict (id) do update set name = excluded.name, applied = excluded.applied, ready = excluded.ready,
    details = excluded.details, seen_at = now();
end $$;

-- The rate limits of the management service have no value after a crash. The table is unlogged, so that updates of a
-- limit wait neither for the disk nor for a replica.
alter table rate_limits set unlogged;

-- As before, with one restriction: only the owner can remove entries younger than a minute. So a compromised validator
-- cannot force the others to reload.
create or replace function prune_change_log(keep interval, most integer) returns bigint language plpgsql
  security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  mark record;
  gone bigint;
begin
  if not pg_has_role(session_user, current_user, 'member') then
    keep := greatest(keep, interval '1 minute');
  end if;
  if not pg_try_advisory_xact_lock(hashtext('prune_change_log')) then
    return null;
  end if;
  insert into feed_marks (at, snapshot) values (clock_timestamp(), pg_current_snapshot());
  select * into mark from feed_marks where at <= clock_timestamp() - keep order by at desc limit 1;
  if mark is null then
    return 0;
  end if;
  update feed_state set pruned = mark.snapshot where snap_covers(mark.snapshot, pruned); -- otherwise the log was voided just now
  delete from change_log where ctid = any (array(select ctid from change_log
    where xid < pg_snapshot_xmax(mark.snapshot) and pg_visible_in_snapshot(xid, mark.snapshot) limit most));
  get diagnostics gone = row_count;
  delete from feed_marks where at < mark.at;
  -- Delete the rows of validators that no longer run.
  delete from flushes where at < now() - interval '1 day';
  delete from validators where seen_at < now() - interval '1 day';
  return gone;
end $$;

-- Creates a role of the server unless it exists. Returns whether it exists afterwards, and warns when this user may not
-- create it. Several databases of one server may call it at the same time.
create function create_group_role(role_name text) returns boolean language plpgsql set search_path = public, pg_temp as $$
begin
  if not exists (select from pg_roles where rolname = role_name) then
    begin
      execute format('create role %I nologin', role_name);
    exception
      when duplicate_object or unique_violation then null; -- created meanwhile by the migration of another database
      when insufficient_privilege then
        raise warning 'The role % does not exist and this user may not create it. Until an administrator runs '
          '"create role % nologin" and the database is migrated again, the service needs a user that owns the tables.',
          role_name, role_name;
        return false;
    end;
  end if;
  execute format('grant usage on schema %I to %I', current_schema(), role_name);
  return true;
end $$;

-- Grants the validator role its permissions: to read the columns that the index depends on, and to call the functions
-- below. Validators of earlier versions read whole rows. They may do so while the last heartbeat of any of them is less
-- than a minute old.
create or replace function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if not create_group_role('keyward_validator') then
    return;
  end if;
  if exists (select from validators where seen_at > now() - interval '1 minute' and not details ? 'readsColumns') then
    grant select on organizations, products, customers, licenses, license_slots, machines, access_rules to keyward_validator;
    raise warning 'A validator of an earlier version is running, so validators may still read whole rows. '
      'Migrate again when all validators run this version.';
  else
    revoke select on organizations, products, customers, licenses, license_slots, machines, access_rules
      from keyward_validator;
  end if;
  grant select (id) on organizations to keyward_validator;
  grant select (id, organization_id) on products, customers to keyward_validator;
  grant select (id, organization_id, product_id, customer_id, key, status, max_machines, expires_at) on licenses
    to keyward_validator;
  grant select (license_id, used) on license_slots to keyward_validator;
  grant select (license_id, machine_id) on machines to keyward_validator;
  grant select (id, organization_id, kind, type, value, scope, scope_id, product_id, license_id, customer_id, expires_at,
    allow_suspended_or_expired) on access_rules to keyward_validator;
  grant select on change_log, feed_state to keyward_validator;
  grant select (id, organization_id, kind, secret_hash, expires_at, revoked_at) on credentials to keyward_validator;
  grant select (id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at) on signing_keys
    to keyward_validator;
  grant execute on function changed_since(pg_snapshot), snap_covers(pg_snapshot, pg_snapshot),
    open_change_log(), prune_change_log(interval, integer),
    claim_slots(uuid[], bytea[], text[], boolean), release_slot(uuid, bytea, jsonb),
    write_behind(uuid, bigint, jsonb, jsonb, float8[], uuid[], text[], bytea[], integer[], float8[], float8[], boolean[]),
    note_validator(uuid, text, text, boolean, jsonb), forget_validator(uuid) to keyward_validator;
end $$;

-- Grants the role of the management service its permissions. The service owns no object and cannot change the schema.
-- It can write the change log only through the triggers.
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if not create_group_role('keyward_management') then
    return;
  end if;
  grant select, insert, update, delete on organizations, members, credentials, credential_uses, signing_keys, products,
    customers, merged_customers, licenses, machines, access_rules, access_rule_counters, folded_rules, alerts,
    idempotency_keys, rate_limits to keyward_management;
  grant select, insert, delete on audit_log, activity, check_counts to keyward_management;
  grant select, update on license_slots to keyward_management;
  grant select on validators, change_log, feed_state to keyward_management;
  grant execute on function changed_since(pg_snapshot), snap_covers(pg_snapshot, pg_snapshot),
    ensure_partition(text, timestamptz), drop_old_partitions(integer, integer),
    record_activity(uuid[], text, bytea, jsonb), new_id(), release_slot(uuid, bytea, jsonb) to keyward_management;
end $$;

-- Revokes the privileges that Postgres grants to PUBLIC by default, also on functions that were created since the last
-- call. Functions of extensions keep their privileges. Every run of the migrations calls it, because a copy of a
-- database has the default privileges again.
create function revoke_from_public() returns void language plpgsql set search_path = public, pg_temp as $$
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
