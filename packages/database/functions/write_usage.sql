-- Applies one batch of the usage that validators aggregate in memory and write about once a second. These writes wake no validator, because
-- no table of this function is logged. A batch is applied exactly once: its number is compared and stored in the same transaction, so a
-- batch whose response was lost can be sent again. A validator numbers its batches in increasing order. Returns false if the batch was
-- applied before. Times are in milliseconds since 1970.
--   rules      [{id, count, at}]                              matches of access rules
--   checks     [{hour, organization, product, code, count}]   analytics; product may be null
--   overuse    [{license, count, first, last}]                checks that ended in TOO_MANY_MACHINES
--   key_uses   [{id, at}]                                     the last use of API keys
--   hostnames  [{license, machine, hostname}]                 hostnames of machines; `machine` is in hexadecimal
--   the rest   one element for each entry of activity         its machine may be null; `seen`: whether the last time becomes `last_seen_at`
-- Rows whose rule, license, machine or organization was deleted are skipped. All validators write tables and rows in the same order, so
-- that no deadlock occurs. The call fails after waiting half a second for a locked row. Send the batch again then.
--
-- Plans are made once and use indexes. Planning each call would cost more than the write, and a plan that was made for small tables would
-- still scan them after they have grown.
create or replace function write_usage(validator uuid, flush bigint, rules jsonb, checks jsonb, overuse jsonb, key_uses jsonb, hostnames jsonb,
    minutes float8[], license_ids uuid[], codes text[], machine_ids bytea[], counts integer[], firsts float8[], lasts float8[],
    seen boolean[])
  returns boolean language plpgsql security definer set search_path = public, pg_temp
  set lock_timeout = '500ms' set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  insert into flushes (validator_id, number) values (validator, flush)
  on conflict (validator_id) do update set number = excluded.number, at = now() where flushes.number < excluded.number;
  if not found then
    return false;
  end if;

  perform ensure_partition('check_counts', at), ensure_partition('activity', at)
  from (values (now()), (now() + interval '1 day')) as soon (at);
  perform ensure_partition('check_counts', at) from (
    select distinct sane_time(to_timestamp(hour / 1000)) as at from jsonb_to_recordset(checks) as r (hour float8)) needed;
  perform ensure_partition('activity', at) from (
    select distinct sane_time(to_timestamp(minute / 1000)) as at from unnest(minutes) as r (minute)) needed;

  perform write_rule_counts(rules);
  perform write_check_counts(checks);
  perform write_check_activity(minutes, license_ids, codes, machine_ids, counts, firsts, lasts);
  perform write_machines_seen(license_ids, machine_ids, lasts, seen);
  perform write_hostnames(hostnames);
  perform write_overuse_counts(overuse);
  perform write_key_uses(key_uses);
  perform write_blacklisted(license_ids, codes, counts, firsts, lasts);
  return true;
end $$;
