-- Returns the quota that a credential counts toward.
create or replace function quota_of_credential(kind text) returns text language sql immutable set search_path = public, pg_temp as $$
  select case kind when 'API_KEY' then 'apiKeys' else 'tokens' end $$;
