-- Stores an occurrence for an alert.
create or replace function note_alert() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  insert into occurrences (kind, organization_id, license_id, details)
  values ('LIMIT_EXCEEDED', new.organization_id, new.license_id, jsonb_build_object('id', new.id, 'count', new.count,
    'firstAt', new.first_at, 'lastAt', new.last_at));
  new.noted_at := now();
  return new;
end $$;
