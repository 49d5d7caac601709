-- Counts the valid credentials that a statement adds, revokes or deletes. A revoked credential no longer counts, so its later deletion
-- changes nothing.
create or replace function count_credentials() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  if tg_op = 'INSERT' then
    perform add_usage(array_agg(organization_id), array_agg(quota_of_credential(kind)), 1) from changed where revoked_at is null;
  elsif tg_op = 'DELETE' then
    perform add_usage(array_agg(organization_id), array_agg(quota_of_credential(kind)), -1) from changed where revoked_at is null;
  else
    perform add_usage(array_agg(o.organization_id), array_agg(quota_of_credential(o.kind)), -1)
    from old_rows o join new_rows n on n.id = o.id where o.revoked_at is null and n.revoked_at is not null;
    perform add_usage(array_agg(o.organization_id), array_agg(quota_of_credential(o.kind)), 1)
    from old_rows o join new_rows n on n.id = o.id where o.revoked_at is not null and n.revoked_at is null;
  end if;
  return null;
end $$;
