-- Binds members to their accounts at the identity provider (docs/api.md#a7).

-- The account with which the member has first signed in. The e-mail address finds the member only until then, because a provider may assign
-- the address to another person later.
alter table members
  add column openid_issuer text,
  add column openid_subject text,
  add constraint members_openid_check check ((openid_issuer is null) = (openid_subject is null));
create unique index members_openid on members (openid_issuer, openid_subject, organization_id)
  where openid_subject is not null;

-- The verified account. It is null in attempts that a process of an earlier version has verified. They must begin again.
alter table openid_attempts add column issuer text, add column subject text;

-- A member with another e-mail address may be another person.
create function members_unbind_openid() returns trigger language plpgsql as $$
begin
  new.openid_issuer := null;
  new.openid_subject := null;
  return new;
end $$;
create trigger unbind_openid before update of email on members for each row
  when (lower(old.email) <> lower(new.email)) execute function members_unbind_openid();
