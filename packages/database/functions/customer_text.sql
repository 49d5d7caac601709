-- Returns the text in which the search for customers finds a part of their email, name or external id.
create or replace function customer_text(email text, name text, external_id text) returns text language sql immutable parallel safe as $$
  select lower(email || e'\n' || coalesce(name, '') || e'\n' || coalesce(external_id, '')) $$;
