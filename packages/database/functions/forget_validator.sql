-- Deletes the heartbeat of a validator that stops.
create or replace function forget_validator(validator uuid) returns void language sql
  security definer set search_path = public, pg_temp as $$
  delete from validators where id = validator;
$$;
