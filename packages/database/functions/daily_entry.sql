-- Returns the place in the activity of the entry for a license, machine and day (UTC), which `digest` identifies within the day. The first
-- call of the day determines the place, and concurrent calls wait for it. The id is a UUIDv7 with the time of this call.
create or replace function daily_entry(digest text, out at timestamptz, out id uuid)
  language plpgsql set search_path = public, pg_temp as $$
declare
  tail text := '7' || left(digest, 3) || '8' || substr(digest, 4, 15);
begin
  insert into daily_entries as d values (
    (lpad(to_hex((extract(epoch from date_trunc('day', now(), 'UTC')) * 1000)::bigint), 12, '0') || tail)::uuid,
    date_trunc('milliseconds', now()))
  on conflict on constraint daily_entries_pkey do update set at = d.at returning d.at into daily_entry.at;
  daily_entry.id := (lpad(to_hex((extract(epoch from daily_entry.at) * 1000)::bigint), 12, '0') || tail)::uuid;
end $$;
