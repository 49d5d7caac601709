-- Records an activity for each of the licenses that belong to the organization, and skips the others. The earlier
-- function without the organization remains for management processes of the previous version.
create function record_activity(organization uuid, licenses_changed uuid[], kind text, machine bytea, acting jsonb) returns void
  language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform ensure_partition('activity', now());
  insert into activity (at, id, organization_id, license_id, type, machine_id, first_at, last_at, actor)
  select now(), new_id(), l.organization_id, l.id, kind, machine, now(), now(), acting
  from licenses l where l.id = any (licenses_changed) and l.organization_id = organization;
end $$;

alter function grant_management() rename to grant_management_before_activity;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_activity();
  if not exists (select from pg_roles where rolname = 'keyward_management') then
    return;
  end if;
  grant execute on function record_activity(uuid, uuid[], text, bytea, jsonb) to keyward_management;
end $$;

-- Revoked API keys are not in the index, so `revoked_at` is only in the condition and is not a column of the feed.
select log_changes_of('credentials', 'C', 'id, organization_id, secret_hash, product_id, expires_at',
  $$kind = 'API_KEY' and revoked_at is null$$);
