-- Records that a license file was issued, in one entry per license, machine and day. Another file on the same day updates the entry. The
-- entry contains the machine id only if the machine is recorded for the license, because apps may send any machine id for a license
-- without a machine limit. The commit does not wait for the disk.
create or replace function record_file_issued(organization uuid, license uuid, machine bytea, acting jsonb) returns void
  language plpgsql security definer set search_path = public, pg_temp as $$
declare
  named bytea := (select machine_id from machines where license_id = license and machine_id = machine);
  entry record;
begin
  perform set_config('synchronous_commit', 'off', true);
  select * into entry from daily_entry(
    encode(sha256(uuid_send(license) || coalesce('\x01'::bytea || named, '\x00'::bytea)), 'hex'));
  perform ensure_partition('activity', entry.at);
  insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
  select entry.at, entry.id, l.organization_id, l.id, 'FILE_ISSUED', named, now(), now(), acting
  from licenses l where l.id = license and l.organization_id = organization
  on conflict (at, id) do update set count = activity.count + 1, last_at = greatest(activity.last_at, excluded.last_at),
    actor = excluded.actor;
end $$;
