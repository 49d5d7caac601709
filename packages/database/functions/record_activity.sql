-- Records an activity for each of the licenses that belong to the organization, and skips the others.
create or replace function record_activity(organization uuid, licenses_changed uuid[], kind text, machine bytea, acting jsonb) returns void
  language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform ensure_partition('activity', now());
  insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
  select now(), new_id(), l.organization_id, l.id, kind, machine, now(), now(), acting
  from licenses l where l.id = any (licenses_changed) and l.organization_id = organization;
end $$;
