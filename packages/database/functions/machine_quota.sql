-- Returns the quota of machines of an organization. The defaults are those of the contract (docs/api.md#m13). Postgres inlines this function
-- into statements, which a setting of the search path would prevent.
create or replace function machine_quota(plan text, quotas jsonb) returns bigint language sql immutable as $$
  select coalesce((quotas ->> 'machines')::bigint,
    case plan when 'FREE' then 2000000 when 'LITE' then 8000000 else 32000000 end) $$;
