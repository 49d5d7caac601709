-- Makes the read of a long change log stop at a limit. `changed_since` collects and sorts all entries first, so with a million entries a
-- read took longer than its timeout, however few changes it was allowed to return.

-- Returns entries of the change log after a snapshot, at most `at_most` of them, without the entries of the organizations `without`. A row
-- that changed several times has several entries. Only an index scan in the order of the transactions can stop at the limit.
create function changes_after(since pg_snapshot, without uuid[], at_most bigint)
  returns table (entity "char", id uuid, machine_id bytea, organization_id uuid) language plpgsql
  stable rows 100 set search_path = public, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return query (
    select l.entity, l.id, l.machine_id, l.organization_id from change_log l
    where l.xid = any (array(select pg_snapshot_xip(since)))
      and coalesce(l.organization_id <> all (without), cardinality(without) = 0)
    limit at_most
  ) union all (
    select l.entity, l.id, l.machine_id, l.organization_id from change_log l
    where l.xid >= pg_snapshot_xmax(since) and coalesce(l.organization_id <> all (without), cardinality(without) = 0)
    limit at_most
  ) limit at_most;
end $$;
revoke execute on function changes_after(pg_snapshot, uuid[], bigint) from public;

-- Adds to the grants of earlier migrations.
alter function grant_validator() rename to grant_validator_before_changes_after;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_changes_after();
  if exists (select from pg_roles where rolname = 'keyward_validator') then
    grant execute on function changes_after(pg_snapshot, uuid[], bigint) to keyward_validator;
  end if;
end $$;
