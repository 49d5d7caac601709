-- Logs changes of machines, counts them toward the quota of their organizations, and keeps license_slots.used equal to the number of machines
-- even after manual changes. Locks the rows of license_slots in the same order as claims do. One function does all of this, because each
-- trigger makes claims slower. A claim wakes no validator, because another validator needs its result only for a check of the same machine.
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
    perform notify_validators();
  end if;
  insert into organization_usage (organization_id, quota, used)
  select o.id, 'machines', count(*) * case tg_op when 'INSERT' then 1 else -1 end
  from changed c join organizations o on o.id = c.organization_id group by o.id;
  return null;
end $$;
