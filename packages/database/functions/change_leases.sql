-- When a license with a machine limit gets `lease_seconds`, the machines that hold its slots get a lease. When leases are removed, machines
-- whose lease has not ended keep their slots without a lease, or until the end of their file.
create or replace function change_leases() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  perform from license_slots where license_id = new.id for no key update;
  if new.lease_seconds is null or new.max_machines is null then
    delete from machines where license_id = new.id and lease_ends_at <= clock_timestamp();
    update machines set lease_ends_at = case when file_ends_at > clock_timestamp() then file_ends_at end
    where license_id = new.id and lease_ends_at is not null;
  else
    update machines set lease_ends_at = greatest(file_ends_at, clock_timestamp() + make_interval(secs => new.lease_seconds))
    where license_id = new.id and lease_ends_at is null;
  end if;
  return null;
end $$;
