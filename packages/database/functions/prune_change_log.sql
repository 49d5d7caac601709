-- Deletes up to `most` entries that are older than `keep`. The maximum keeps the call short. Every validator calls it about once a minute,
-- and again immediately while it returns `most`. Returns the number of deleted entries, or null if another call is in progress. Only the
-- owner can remove entries younger than a minute, so that a compromised validator cannot force the others to reload.
create or replace function prune_change_log(keep interval, most integer) returns bigint language plpgsql
  security definer set search_path = public, pg_temp set enable_seqscan = off as $$
declare
  mark record;
  deleted bigint;
begin
  if not pg_has_role(session_user, current_user, 'member') then
    keep := greatest(keep, interval '1 minute');
  end if;
  if not pg_try_advisory_xact_lock(hashtext('prune_change_log')) then
    return null;
  end if;
  insert into feed_marks (at, snapshot) values (clock_timestamp(), pg_current_snapshot());
  select * into mark from feed_marks where at <= clock_timestamp() - keep order by at desc limit 1;
  if mark is null then
    return 0;
  end if;
  update feed_state set pruned = mark.snapshot where snap_covers(mark.snapshot, pruned); -- otherwise the log was voided just now
  update feed_state set gone = mark.snapshot where snap_covers(mark.snapshot, gone);
  delete from change_log where ctid = any (array(select ctid from change_log
    where xid < pg_snapshot_xmax(mark.snapshot) and pg_visible_in_snapshot(xid, mark.snapshot) limit most));
  get diagnostics deleted = row_count;
  delete from feed_marks where at < mark.at;
  -- Delete the rows of validators that no longer run.
  delete from flushes where at < now() - interval '1 day';
  delete from validators where seen_at < now() - interval '1 day';
  return deleted;
end $$;
