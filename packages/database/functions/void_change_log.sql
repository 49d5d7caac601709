-- Makes every validator reload. Keeps the entries, so that a validator can follow the log meanwhile.
create or replace function void_change_log() returns void language sql security definer set search_path = public, pg_temp as $$
  with own as (
    select pg_current_xact_id()::text::numeric as xid
  ), taken as (
    select pg_current_snapshot() as snapshot
  ), still_open as ( -- otherwise a transaction that was already open would make readers reload until it ends
    select x::text::numeric as xid from taken, pg_snapshot_xip(snapshot) x
    union
    select g from taken, own, generate_series(pg_snapshot_xmax(snapshot)::text::numeric, own.xid - 1) g
  )
  update feed_state set reloads = reloads + 1, pruned = (
    select format('%s:%s:%s', coalesce(min(o.xid), own.xid + 1), own.xid + 1, string_agg(o.xid::text, ',' order by o.xid))
    from own left join still_open o on o.xid < own.xid group by own.xid)::pg_snapshot;
  select pg_notify('keyward_changes', '');
$$;
