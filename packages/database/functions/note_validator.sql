-- Stores the heartbeat of a validator. Fails for malformed values, and for a new validator while 200 others are live.
-- The commit does not wait for the disk, because the next heartbeat follows in a second.
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
  -- Management reads these values of all validators together, so it rejects malformed values of one validator here.
  perform applied_snapshot::pg_snapshot, (more #>> '{others,snapshot}')::pg_snapshot;
  if octet_length(more::text) > 65536 or jsonb_typeof(more) <> 'object'
    or coalesce(jsonb_typeof(more -> 'features'), 'array') <> 'array'
    or coalesce(jsonb_typeof(more #> '{others,except}'), 'array') <> 'array' then
    raise exception 'The details of the validator are malformed' using errcode = '22023';
  end if;
  if not exists (select from validators where id = validator)
    and (select count(*) from validators where seen_at > now() - interval '1 minute') >= 200 then
    raise exception 'Too many validators have sent a heartbeat in the last minute' using errcode = '53400';
  end if;
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
