-- A heartbeat counts only for the history of the server that its validator has read. After a crash or a failover, the
-- server assigns the ids of lost transactions again. A validator that has not yet detected the crash continues to
-- publish its snapshot. The snapshot contains these ids, although the validator has not read the new transactions.

-- Returns the result of `open_change_log` without opening the log.
create function change_log_identity() returns text language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  return format('%s/%s', log_place(), left(pg_walfile_name(pg_current_wal_lsn()), 8));
end $$;

-- `more` may contain `server`, the identity of the change log that the snapshot belongs to. If that identity differs
-- from the current one, the function stores an empty snapshot. Then no change counts as applied by the validator, and
-- requests that wait for the validator continue to wait.
create or replace function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb)
  returns void language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform applied_snapshot::pg_snapshot; -- fails for an invalid snapshot
  if applied_snapshot is not null and more->>'server' <> change_log_identity() then
    applied_snapshot := '1:1:';
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into validators (id, name, applied, ready, details)
  values (validator, left(named, 200), applied_snapshot, is_ready, more)
  on conflict (id) do update set name = excluded.name, applied = excluded.applied, ready = excluded.ready,
    details = excluded.details, seen_at = now();
end $$;

revoke execute on function change_log_identity() from public;
