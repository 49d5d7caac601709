-- Returns the identity of the server, its run since the last crash, its timeline and this log. Every reader calls it when it connects, with
-- the features that the reader implements. Fails on a standby, whose snapshots lack open transactions, so that a reader there would lose
-- changes.
--
-- First deletes a log that was written on another server, such as that of a restored backup. After a crash or a failover, the server has
-- the same system identifier, which some managed servers hide, and one new run; the log then remains. A backup that is restored into a
-- running database adds a second new run.
create or replace function open_change_log_with(features text[]) returns text language plpgsql
  security definer set search_path = public, pg_temp as $$
declare
  writer text;
  home text[];
begin
  if pg_is_in_recovery() then
    raise exception 'This server is a standby; changes can only be followed on the primary' using errcode = '25006';
  end if;
  perform require_features(features);
  if (select server from feed_state) <> log_place() or not exists (select from server_run) then
    perform from feed_state for update;
    insert into server_run (id) select gen_random_uuid() where not exists (select from server_run);
    select server into writer from feed_state;
    if writer <> log_place() then
      home := (string_to_array(log_place(), '/'))[1:3];
      if home[1] = '' or home <> (string_to_array(writer, '/'))[1:3] or (select count(*) from server_run) <> 1 then
        perform forget_change_log();
      end if;
      update feed_state set server = log_place();
    end if;
  end if;
  return change_log_identity();
end $$;
