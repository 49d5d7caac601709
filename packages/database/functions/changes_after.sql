-- Returns entries of the change log after a snapshot, at most `at_most` of them, without the entries of the organizations `without`. A row
-- that changed several times has several entries. Only an index scan in the order of the transactions can stop at the limit.
create or replace function changes_after(since pg_snapshot, without uuid[], at_most bigint)
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
