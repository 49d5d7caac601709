-- Revokes the keys of deleted products, even if a manual statement deletes the product. Validators reject a key whose product does not
-- exist, but would accept the key again if a product with the same id were restored.
create or replace function revoke_keys_of_products() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  update credentials set revoked_at = now()
  where product_id in (select id from old_rows) and revoked_at is null;
  return null;
end $$;
