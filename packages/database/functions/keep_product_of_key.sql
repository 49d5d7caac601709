-- The binding of a key is immutable, so that a secret in shipped apps never gets access to further products.
create or replace function keep_product_of_key() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  raise exception 'The product of a credential cannot be changed' using errcode = '23514';
end $$;
