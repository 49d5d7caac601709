-- Stores the last use of API keys. Replaces a time that is far from the current time by the current time. The stored time never becomes
-- earlier.
create or replace function write_key_uses(rows jsonb) returns void language sql set search_path = public, pg_temp as $$
  insert into credential_uses (credential_id, last_used_at)
  select c.id, least(now(), sane_time(to_timestamp(max(r.at) / 1000)))
  from jsonb_to_recordset(rows) as r (id uuid, at float8) join credentials c on c.id = r.id
  where c.kind = 'API_KEY'
  group by c.id order by c.id
  on conflict (credential_id) do update set
    last_used_at = greatest(credential_uses.last_used_at, excluded.last_used_at);
$$;
