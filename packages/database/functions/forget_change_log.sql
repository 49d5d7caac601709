-- Deletes the log, whose entries have no meaning on this server.
create or replace function forget_change_log() returns void language sql security definer set search_path = public, pg_temp as $$
  select void_change_log();
  delete from change_log;
  delete from feed_marks;
  update feed_state set gone = pruned;
$$;
