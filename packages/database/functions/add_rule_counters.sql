-- Adds the counters of new access rules.
create or replace function add_rule_counters() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into access_rule_counters (rule_id, organization_id) select id, organization_id from new_rows;
  return null;
end $$;
