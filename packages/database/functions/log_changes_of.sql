-- Creates the trigger function `log_changes_of_TABLE`, which logs the changes of a table. An update that changes none of the listed columns
-- is not logged and wakes no validator. The text of each statement is fixed here, so that a trigger's arguments cannot change it.
--   letter   the letter of the entity in change_log
--   columns  the columns that the index depends on, `id` first
--   rows     a condition for the rows that count
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
        perform notify_validators();
      end if;
      return null;
    end $body$ $sql$, function_name, logged_table, letter, columns, rows, current_schema(), owner);
end $$;

select
  log_changes_of('organizations', 'O', 'id'),
  -- Revoked API keys are not in the index, so `revoked_at` is only in the condition.
  log_changes_of('credentials', 'C', 'id, organization_id, secret_hash, product_id, expires_at',
    $$kind = 'API_KEY' and revoked_at is null$$),
  log_changes_of('signing_keys', 'K', 'id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at, prepared_at, '
    'delegations'),
  log_changes_of('products', 'P', 'id, organization_id, entitlements'),
  log_changes_of('customers', 'U', 'id, organization_id'),
  log_changes_of('licenses', 'L', 'id, organization_id, product_id, customer_id, key, status, max_machines, expires_at, entitlements, '
    'duration_days, lease_seconds, grace_days'),
  log_changes_of('access_rules', 'R', 'id, organization_id, kind, mode, type, value, scope, product_id, license_id, customer_id, '
    'expires_at, allow_suspended_or_expired');
