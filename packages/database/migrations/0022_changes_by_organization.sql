-- The change log contains the organization of each entry. So a validator can read a very large change of one
-- organization separately, and follow the changes of the others meanwhile. The column is null in entries from before
-- this migration, and in entries for machines that were deleted with their license.

alter table change_log add column organization_id uuid;

-- As before, with the organization.
create or replace function log_changes_of(logged_table text, letter text, columns text, rows text default 'true') returns void
  language plpgsql set search_path = public, pg_temp as $$
declare
  function_name text := format('log_changes_of_%s', logged_table);
  owner text := case logged_table when 'organizations' then 'id' else 'organization_id' end;
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
        insert into change_log (entity, id, organization_id) select %3$L::"char", id, %7$I from new_rows where %5$s;
      elsif tg_op = 'DELETE' then
        insert into change_log (entity, id, organization_id) select %3$L::"char", id, %7$I from old_rows where %5$s;
      else
        insert into change_log (entity, id, organization_id) select distinct %3$L::"char", id, %7$I from (
          (select %4$s from old_rows where %5$s except select %4$s from new_rows where %5$s) union all
          (select %4$s from new_rows where %5$s except select %4$s from old_rows where %5$s)) different;
      end if;
      get diagnostics logged = row_count;
      if logged > 0 then
        perform pg_notify('keyward_changes', '');
      end if;
      return null;
    end $body$ $sql$, function_name, logged_table, letter, columns, rows, current_schema(), owner);
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
  log_changes_of('credentials', 'C', 'id, organization_id, secret_hash, expires_at, revoked_at',
    $$kind = 'API_KEY' and revoked_at is null$$),
  log_changes_of('signing_keys', 'K',
    'id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at'),
  log_changes_of('products', 'P', 'id, organization_id'),
  log_changes_of('customers', 'U', 'id, organization_id'),
  log_changes_of('licenses', 'L',
    'id, organization_id, product_id, customer_id, key, status, max_machines, expires_at'),
  log_changes_of('access_rules', 'R',
    'id, organization_id, kind, type, value, scope, product_id, license_id, customer_id, '
    'expires_at, allow_suspended_or_expired');

create or replace function log_machines() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform from license_slots where license_id in (select license_id from changed) order by license_id for no key update;
  update license_slots s set used = used + c.machines * case tg_op when 'INSERT' then 1 else -1 end
  from (select license_id, count(*)::integer as machines from changed group by license_id) c
  where s.license_id = c.license_id;
  insert into change_log (entity, id, machine_id, organization_id)
  select 'M', c.license_id, c.machine_id, (select l.organization_id from licenses l where l.id = c.license_id) from changed c;
  if tg_op = 'DELETE' and found then
    perform pg_notify('keyward_changes', '');
  end if;
  return null;
end $$;

drop function changed_since(pg_snapshot);
create function changed_since(since pg_snapshot)
  returns table (entity "char", id uuid, machine_id bytea, organization_id uuid) language plpgsql
  stable rows 100 set search_path = public, pg_temp set enable_seqscan = off as $$
begin
  return query
  select distinct l.entity, l.id, l.machine_id, l.organization_id from change_log l
  where l.xid >= pg_snapshot_xmax(since) or l.xid = any (array(select pg_snapshot_xip(since)));
end $$;
