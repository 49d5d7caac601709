-- Changes the versions of sets. `changed` contains the rules after an insertion or update, and before a deletion.
create or replace function version_sets() returns trigger language plpgsql security definer set search_path = public, pg_temp as $$
declare
  added integer := case tg_op when 'INSERT' then 1 when 'DELETE' then -1 else 0 end;
begin
  perform require_own_table(tg_table_schema);
  if exists (select from changed where set_id is not null) then
    perform from access_rule_sets where id in (select set_id from changed) order by id for no key update;
    update access_rule_sets s set version = gen_random_uuid(), updated_at = now(), rules = s.rules + added * c.rules
    from (select set_id, count(*)::integer as rules from changed where set_id is not null group by set_id) c
    where s.id = c.set_id;
  end if;
  return null;
end $$;
