-- Returns the latest snapshot that the validator has applied in the history of this server, or null.
create or replace function landmark_of(validator uuid) returns text language sql stable
  security definer set search_path = public, pg_temp as $$
  select landmark from validators where id = validator;
$$;
