-- Fails for a table of another schema, such as a temporary table, to which a user could attach a trigger function of this schema.
create or replace function require_own_table(schema_name name) returns void language plpgsql
  set search_path = public, pg_temp as $$
begin
  if schema_name <> current_schema() then
    raise exception 'This function only serves tables of the schema %', current_schema() using errcode = '42501';
  end if;
end $$;
