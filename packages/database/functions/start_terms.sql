-- Starts the terms of the locked licenses for which a claim is VALID. These are licenses without a limit, and licenses of which a claiming
-- machine now holds a slot.
create or replace function start_terms(locked uuid[], license_ids uuid[], machine_ids bytea[]) returns void language sql
  set search_path = public, pg_temp as $$
  with started as (
    update licenses l set expires_at = term_end(l.duration_days), updated_at = now()
    where l.id = any (locked) and l.status = 'active' and l.duration_days is not null and l.expires_at is null
      and (l.max_machines is null or exists (
        select from unnest(license_ids, machine_ids) as u (license_id, machine_id)
          join machines m on m.license_id = u.license_id and m.machine_id = u.machine_id
        where u.license_id = l.id))
    returning l.id, l.organization_id
  )
  insert into activity (at, id, organization_id, license_id, type, first_at, last_at)
  select now(), new_id(), organization_id, id, 'TERM_STARTED', now(), now() from started;
$$;
