-- Logs the rows that TRUNCATE is about to remove. For a table that is not listed here, it requests a reload.
create or replace function log_truncate() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  case tg_table_name
    when 'organizations' then
      insert into change_log (entity, id, organization_id) select 'O', id, id from organizations;
    when 'credentials' then
      insert into change_log (entity, id, organization_id)
      select 'C', id, organization_id from credentials where kind = 'API_KEY';
    when 'signing_keys' then
      insert into change_log (entity, id, organization_id) select 'K', id, organization_id from signing_keys;
    when 'products' then
      insert into change_log (entity, id, organization_id) select 'P', id, organization_id from products;
    when 'customers' then
      insert into change_log (entity, id, organization_id) select 'U', id, organization_id from customers;
    when 'licenses' then
      insert into change_log (entity, id, organization_id) select 'L', id, organization_id from licenses;
    when 'access_rules' then
      insert into change_log (entity, id, organization_id) select 'R', id, organization_id from access_rules;
    when 'machines' then
      insert into change_log (entity, id, machine_id, organization_id)
      select 'M', m.license_id, m.machine_id, l.organization_id from machines m left join licenses l on l.id = m.license_id;
      update license_slots set used = 0 where used <> 0;
    else
      perform void_change_log();
  end case;
  perform pg_notify('keyward_changes', '');
  return null;
end $$;
