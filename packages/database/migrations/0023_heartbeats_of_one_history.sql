-- A heartbeat counts only for the history of the server that its validator has read. After a crash or a failover the
-- numbers of lost transactions are given out again. A validator that has not noticed yet goes on publishing its snapshot,
-- which contains such numbers although it has not read the new transactions.

-- Returns what `open_change_log` returns, without opening the log.
create function change_log_identity() returns text language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  return format('%s/%s', log_place(), left(pg_walfile_name(pg_current_wal_lsn()), 8));
end $$;

-- `more` may contain `server`, the identity of the change log that the snapshot belongs to. If it is another one, the
-- snapshot is replaced by one without any transaction, so that nothing counts as applied and whoever waits goes on waiting.
create or replace function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb)
  returns void language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform applied_snapshot::pg_snapshot; -- fails unless it is one
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
