-- Returns whether everything that is visible in `b` is also visible in `a`.
create or replace function snap_covers(a pg_snapshot, b pg_snapshot) returns boolean language sql immutable parallel safe as $$
  select pg_snapshot_xmax(a) >= pg_snapshot_xmax(b)
     and not exists (select from pg_snapshot_xip(a) x where pg_visible_in_snapshot(x, b)) $$;
