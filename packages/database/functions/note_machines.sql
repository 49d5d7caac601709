-- Stores one occurrence for all machines that a statement adds, so that a claim of many machines costs one insertion.
create or replace function note_machines() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  if tg_op = 'INSERT' then
    insert into occurrences (kind, changes, ids, license_ids, machine_ids, hostnames, first_seen, last_seen, lease_ends)
    select 'MACHINE_ACTIVATED', count(*), array_agg(id), array_agg(license_id), array_agg(machine_id), array_agg(hostname),
      array_agg(first_seen_at), array_agg(last_seen_at), array_agg(lease_ends_at)
    from changed having count(*) > 0;
  else
    -- The machines of a deleted license are skipped. A statement may delete very many machines of other licenses, so an occurrence has at
    -- most 100.
    insert into occurrences (kind, changes, ids, license_ids, machine_ids, hostnames, first_seen, last_seen, lease_ends)
    select 'MACHINE_DELETED', count(*), array_agg(id), array_agg(license_id), array_agg(machine_id), array_agg(hostname),
      array_agg(first_seen_at), array_agg(last_seen_at), array_agg(lease_ends_at)
    from (select *, row_number() over () as i from changed d
      where exists (select from licenses l where l.id = d.license_id)) c
    group by (i - 1) / 100;
  end if;
  return null;
end $$;
