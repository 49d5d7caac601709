-- Returns whether a value has the form of entitlements, so that services need not validate stored values. The limit is 8 KiB instead of the
-- API's 4 KiB, because the text of a jsonb value contains additional spaces.
create or replace function are_entitlements(members jsonb, with_null boolean) returns boolean language sql immutable as $$
  select jsonb_typeof(members) = 'object' and octet_length(members::text) <= 8192 and not exists (
    select from jsonb_each(case jsonb_typeof(members) when 'object' then members else '{}' end) as m (name, value)
    where name !~ '^[a-z][a-z0-9_.-]{0,63}$' or not case jsonb_typeof(value)
      when 'boolean' then true
      when 'number' then value::numeric = trunc(value::numeric) and abs(value::numeric) < 9007199254740992
      when 'string' then length(value #>> '{}') <= 256
      when 'null' then with_null
      else false
    end)
$$;
