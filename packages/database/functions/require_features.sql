-- Fails if a license needs a feature that is not in `features`, the features of the calling validator. A validator of an earlier version
-- would never expire a license whose term has not started, would never end a lease, and would reject checks in a grace period.
create or replace function require_features(features text[]) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  if not 'terms' = any (features) and exists (select from licenses where duration_days is not null and expires_at is null) then
    raise exception 'Licenses use durationDays, which this version of the validator does not implement' using errcode = '0A000';
  end if;
  if not 'leases' = any (features) and exists (select from licenses where lease_seconds is not null and max_machines is not null) then
    raise exception 'Licenses use leaseSeconds, which this version of the validator does not implement' using errcode = '0A000';
  end if;
  if not 'grace' = any (features) and exists (select from licenses where grace_days > 0) then
    raise exception 'Licenses use graceDays, which this version of the validator does not implement' using errcode = '0A000';
  end if;
end $$;
