-- Records which license files were issued, lists prepared signing keys at validators, and bounds the responses that are stored
-- for repeated requests.

-- Records that a license file was issued, in one entry per license, machine and day. The id is computed from these
-- three, so another file on the same day updates the entry. `at` is the beginning of the day in UTC. The entry contains
-- the machine id only if the machine is recorded for the license, because apps may send any machine id for a license
-- without a machine limit. The commit does not wait for the disk.
create or replace function record_file_issued(organization uuid, license uuid, machine bytea, acting jsonb) returns void
  language plpgsql security definer set search_path = public, pg_temp as $$
declare
  day timestamptz := date_trunc('day', now(), 'UTC');
  named bytea := (select machine_id from machines where license_id = license and machine_id = machine);
  digest text := encode(sha256(uuid_send(license) || coalesce('\x01'::bytea || named, '\x00'::bytea)), 'hex');
  entry uuid := (lpad(to_hex((extract(epoch from day) * 1000)::bigint), 12, '0')
    || '7' || left(digest, 3) || '8' || substr(digest, 4, 15))::uuid;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform ensure_partition('activity', day);
  insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
  select day, entry, l.organization_id, l.id, 'FILE_ISSUED', named, now(), now(), acting
  from licenses l where l.id = license and l.organization_id = organization
  on conflict (at, id) do update set count = activity.count + 1, last_at = greatest(activity.last_at, excluded.last_at),
    actor = excluded.actor;
end $$;

-- The feed contains `prepared_at`, so that validators list a prepared key and do not treat it as retired.
select log_changes_of('signing_keys', 'K',
  'id, organization_id, key_id, public_key, created_at, retired_at, withdrawn_at, prepared_at');
create unique index signing_keys_prepared on signing_keys (organization_id) where prepared_at is not null and withdrawn_at is null;

-- The number of bytes that an organization has stored in a day is the sum of `bytes`, which an index-only scan reads.
alter table idempotency_keys
  add column organization_id uuid,
  add column bytes integer not null default 0;
create index idempotency_keys_bytes on idempotency_keys (organization_id, created_at) include (bytes)
  where organization_id is not null;

alter function grant_validator() rename to grant_validator_before_prepared_keys;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_prepared_keys();
  if not exists (select from pg_roles where rolname = 'keyward_validator') then
    return;
  end if;
  grant select (prepared_at) on signing_keys to keyward_validator;
end $$;
