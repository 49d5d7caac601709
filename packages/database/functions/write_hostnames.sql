-- Stores the hostnames of machines that have none.
create or replace function write_hostnames(rows jsonb) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform from machines m
  where m.hostname is null and (m.license_id, m.machine_id) in (
    select r.license, decode(r.machine, 'hex') from jsonb_to_recordset(rows) as r (license uuid, machine text))
  order by m.license_id, m.machine_id for no key update;
  update machines m set hostname = n.hostname
  from (
    select r.license, decode(r.machine, 'hex') as machine, max(r.hostname) as hostname
    from jsonb_to_recordset(rows) as r (license uuid, machine text, hostname text) group by 1, 2
  ) n
  where m.license_id = n.license and m.machine_id = n.machine and m.hostname is null;
end $$;
