-- Deletes the machines whose lease has ended, and renews the leases of the claiming machines. The caller has already locked the licenses'
-- slots, so the time is read after the validator computed the end of the lease. So a lease never ends earlier than the validator has
-- computed, nor before the end of the machine's file. At most 2,000 machines are deleted, so that a claim is short. The others count until the next claim.
create or replace function renew_leases(leased uuid[], license_ids uuid[], machine_ids bytea[]) returns void language plpgsql
  set search_path = public, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  at timestamptz := clock_timestamp();
begin
  if exists (select from machines m where m.license_id = any (leased) and m.lease_ends_at <= at) then
    with ended as (
      delete from machines m where (m.license_id, m.machine_id) in (
        (select e.license_id, e.machine_id from machines e
          where e.license_id = any (leased) and e.lease_ends_at <= at limit 2000)
        union
        select e.license_id, e.machine_id from unnest(license_ids, machine_ids) as u (license_id, machine_id)
          join machines e on e.license_id = u.license_id and e.machine_id = u.machine_id
        where u.license_id = any (leased) and e.lease_ends_at <= at)
      returning m.license_id, m.machine_id
    )
    insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at)
    select now(), new_id(), l.organization_id, l.id, 'LEASE_ENDED', e.machine_id, now(), now()
    from ended e join licenses l on l.id = e.license_id;
  end if;
  update machines m set lease_ends_at = greatest(m.file_ends_at, at + make_interval(secs => l.lease_seconds))
  from unnest(license_ids, machine_ids) as u (license_id, machine_id) join licenses l on l.id = u.license_id
  where u.license_id = any (leased) and l.lease_seconds is not null and l.status = 'active'
    and m.license_id = u.license_id and m.machine_id = u.machine_id and (m.lease_ends_at > at or m.lease_ends_at is null);
end $$;
