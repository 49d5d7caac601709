-- Removes the account of a member whose e-mail address changes, because that may be another person.
create or replace function members_unbind_openid() returns trigger language plpgsql as $$
begin
  new.openid_issuer := null;
  new.openid_subject := null;
  return new;
end $$;
