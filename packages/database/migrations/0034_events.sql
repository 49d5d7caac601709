-- Events of an organization's resources (docs/api.md#w1). The event of a change is written in the transaction of the
-- change.

-- `id` is a UUIDv7, and its milliseconds are the time of the event. `data` is stored as text, so it is returned unchanged.
create table events (
  id uuid primary key,
  organization_id uuid not null,
  type text not null,
  resource_id uuid, -- null for an event about many resources or none
  data json not null
);
create index events_listing on events (organization_id, id);
create index events_type on events (organization_id, type, id);
create index events_resource on events (organization_id, resource_id, id) where resource_id is not null;

-- Changes by validators that the management service has not yet turned into events. Triggers write them in the
-- transaction of the change, so the changes of validators of every version are recorded. `id` becomes the id of the
-- event.
create table occurrences (
  id uuid primary key default new_id(),
  xid xid8 not null default pg_current_xact_id(),
  kind text not null,
  organization_id uuid, -- null when the changed row does not contain one
  license_id uuid not null,
  machine_id bytea,
  details jsonb
);
create index occurrences_xid on occurrences (xid);

-- Stores occurrences for added and deleted machines, once for each statement, so that a claim of many machines costs one insertion. A deleted machine
-- belongs to the release in the same transaction. The machines of a deleted license are skipped.
create function note_machines() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into occurrences (kind, license_id, machine_id, details)
  select case tg_op when 'INSERT' then 'MACHINE_ACTIVATED' else 'MACHINE_DELETED' end, c.license_id, c.machine_id,
    jsonb_build_object('id', c.id, 'hostname', c.hostname, 'firstSeenAt', c.first_seen_at, 'lastSeenAt', c.last_seen_at,
      'leaseEndsAt', c.lease_ends_at)
  from changed c where tg_op = 'INSERT' or exists (select from licenses l where l.id = c.license_id);
  return null;
end $$;
create trigger machines_noted_added after insert on machines referencing new table as changed
  for each statement execute function note_machines();
create trigger machines_noted_deleted after delete on machines referencing old table as changed
  for each statement execute function note_machines();

-- Stores an occurrence for the release of a machine and the start of a term. Activity with an actor is a change through the management
-- API, which writes its events itself.
create function note_activity() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into occurrences (kind, organization_id, license_id, machine_id)
  values (new.type, new.organization_id, new.license_id, new.machine_id);
  return null;
end $$;
create trigger activity_noted after insert on activity for each row
  when (new.actor is null and new.type in ('MACHINE_RELEASED', 'LEASE_ENDED', 'TERM_STARTED'))
  execute function note_activity();

-- An occurrence is stored when an alert opens, and then at most once an hour while checks exceed the limit.
alter table alerts add column noted_at timestamptz not null default now();

create function note_alert() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into occurrences (kind, organization_id, license_id, details)
  values ('LIMIT_EXCEEDED', new.organization_id, new.license_id, jsonb_build_object('id', new.id, 'count', new.count,
    'firstAt', new.first_at, 'lastAt', new.last_at));
  new.noted_at := now();
  return new;
end $$;
create trigger alerts_noted_opened after insert on alerts for each row execute function note_alert();
create trigger alerts_noted_again before update of count on alerts for each row
  when (new.count > old.count and old.noted_at < now() - interval '1 hour')
  execute function note_alert();

-- Licenses that have been used, so that the first use of each is one event. After the migrations, src/online-steps.ts
-- adds licenses that were already in use.
create table used_licenses (license_id uuid primary key references licenses on delete cascade);

-- The progress of the scheduler. Every event that was due before `until` has been written.
create table event_schedules (
  name text primary key,
  until timestamptz not null
);
-- Events that the scheduler has written, so that it writes each event once. `mark` identifies the event and its due
-- time.
create table event_marks (
  resource_id uuid not null,
  mark text not null,
  due timestamptz not null,
  primary key (resource_id, mark)
);
create index event_marks_due on event_marks (due);
-- The percentage in the last `quota.reached` event of each quota.
create table quota_levels (
  organization_id uuid not null references organizations on delete cascade,
  quota text not null,
  percent integer not null,
  primary key (organization_id, quota)
);

-- Credentials and members with all earlier permissions get the new permission.
do $$
declare
  all_before constant text[] := '{licenses.read,licenses.write,products.read,products.write,customers.read,customers.write,analytics.read,audit.read,credentials.write,signing-keys.write}';
begin
  update credentials set permissions = permissions || '{webhooks.read}'
  where permissions @> all_before and not permissions @> '{webhooks.read}';
  update members set permissions = permissions || '{webhooks.read}'
  where permissions @> all_before and not permissions @> '{webhooks.read}';
end $$;

-- Adds to the grants of earlier migrations.
alter function grant_management() rename to grant_management_before_events;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_events();
  if not exists (select from pg_roles where rolname = 'keyward_management') then
    return;
  end if;
  grant select, insert, delete on events, event_marks, used_licenses to keyward_management;
  grant select, delete on occurrences to keyward_management;
  grant select, insert, update, delete on event_schedules, quota_levels to keyward_management;
end $$;
