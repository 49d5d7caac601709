-- Gives a changed row a later `updated_at`, which is the version of the resource (docs/api.md#m18). Two versions of a row differ in the
-- milliseconds that responses contain, however fast changes follow each other and whatever the clocks of the services show.
create or replace function next_version() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  new.updated_at := greatest(
    date_trunc('milliseconds', case when new.updated_at = old.updated_at then now() else new.updated_at end),
    date_trunc('milliseconds', old.updated_at) + interval '1 millisecond');
  return new;
end $$;
