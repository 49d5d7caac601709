-- Entitlements of products and licenses, and API keys that are bound to a product.
--
-- Validators of earlier versions ignore these columns and continue to follow the change log. They treat a bound key as
-- unbound, so upgrade all validators before keys are bound (docs/operations/upgrade.md).

-- Returns whether a value has the form of entitlements, so that services need not validate stored values. The limit is
-- 8 KiB instead of the API's 4 KiB, because the text of a jsonb value contains additional spaces.
create function are_entitlements(members jsonb, with_null boolean) returns boolean language sql immutable as $$
  select jsonb_typeof(members) = 'object' and octet_length(members::text) <= 8192 and not exists (
    select from jsonb_each(case jsonb_typeof(members) when 'object' then members else '{}' end) as m (name, value)
    where name !~ '^[a-z][a-z0-9_.-]{0,63}$' or not case jsonb_typeof(value)
      when 'boolean' then value = 'true'
      when 'number' then value::numeric = trunc(value::numeric) and abs(value::numeric) < 9007199254740992
      when 'string' then length(value #>> '{}') <= 256
      when 'null' then with_null
      else false
    end)
$$;

-- Entitlements are null when there are none.
alter table products add column entitlements jsonb,
  add constraint products_entitlements check (are_entitlements(entitlements, false)) not valid;
alter table licenses add column entitlements jsonb,
  add constraint licenses_entitlements check (are_entitlements(entitlements, true)) not valid;

-- There is no foreign key, because a revoked key keeps the id of its product after the product is deleted.
alter table credentials add column product_id uuid
  constraint credentials_product check (kind = 'API_KEY' or product_id is null);
create index credentials_product on credentials (product_id) where product_id is not null;

-- Revokes the keys of deleted products, even if a manual statement deletes the product. Validators reject a key whose
-- product does not exist, but would accept the key again if a product with the same id were restored.
create function revoke_keys_of_products() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform require_own_table(tg_table_schema);
  update credentials set revoked_at = now()
  where product_id in (select id from old_rows) and revoked_at is null;
  return null;
end $$;
create trigger products_revoke_keys after delete on products referencing old table as old_rows
  for each statement execute function revoke_keys_of_products();

-- The binding of a key is immutable, so that a secret in shipped apps never gets access to further products.
create function keep_product_of_key() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  raise exception 'The product of a credential cannot be changed' using errcode = '23514';
end $$;
create trigger credentials_keep_product before update of product_id on credentials
  for each row when (old.product_id is distinct from new.product_id) execute function keep_product_of_key();

select
  log_changes_of('credentials', 'C', 'id, organization_id, secret_hash, product_id, expires_at, revoked_at',
    $$kind = 'API_KEY' and revoked_at is null$$),
  log_changes_of('products', 'P', 'id, organization_id, entitlements'),
  log_changes_of('licenses', 'L', 'id, organization_id, product_id, customer_id, key, status, max_machines, expires_at, '
    'entitlements');

-- Adds to the grants of earlier migrations.
alter function grant_validator() rename to grant_validator_before_entitlements;
create function grant_validator() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_validator_before_entitlements();
  if exists (select from pg_roles where rolname = 'keyward_validator') then
    grant select (entitlements) on products, licenses to keyward_validator;
    grant select (product_id) on credentials to keyward_validator;
  end if;
end $$;

-- A check constraint runs as the user who writes the table, so management needs permission for its function.
alter function grant_management() rename to grant_management_before_entitlements;
create function grant_management() returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform grant_management_before_entitlements();
  if exists (select from pg_roles where rolname = 'keyward_management') then
    grant execute on function are_entitlements(jsonb, boolean) to keyward_management;
  end if;
end $$;
