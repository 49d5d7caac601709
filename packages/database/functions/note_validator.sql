-- Stores the heartbeat of a validator. The commit does not wait for the disk, because the next heartbeat follows in a second.
--
-- `more` may contain `server`, the identity of the change log that the snapshot belongs to. A heartbeat counts only for the history of the
-- server that its validator has read: after a crash or a failover, the server assigns the ids of lost transactions again. If the identity
-- differs from the current one, the function stores an empty snapshot. Then no change counts as applied by the validator, and requests that
-- wait for the validator continue to wait.
create or replace function note_validator(validator uuid, named text, applied_snapshot text, is_ready boolean, more jsonb)
  returns void language plpgsql security definer set search_path = public, pg_temp as $$
declare
  reached text;
begin
  perform applied_snapshot::pg_snapshot; -- fails for an invalid snapshot
  if applied_snapshot is not null and more->>'server' <> change_log_identity() then
    applied_snapshot := '1:1:';
  elsif more ? 'server' then
    reached := applied_snapshot;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into validators as v (id, name, applied, ready, details, landmark)
  values (validator, left(named, 200), applied_snapshot, is_ready, more, reached)
  on conflict (id) do update set name = excluded.name, applied = excluded.applied, ready = excluded.ready,
    details = excluded.details, landmark = coalesce(excluded.landmark, v.landmark), seen_at = now();
end $$;
