-- The grace period after the expiry, and the lifetime of license files. Services of the previous version insert licenses with the defaults.
alter table licenses
  add column grace_days integer not null default 0 check (grace_days between 0 and 90),
  add column file_days integer not null default 30 check (file_days between 1 and 366);
create index licenses_grace_end on licenses (((expires_at at time zone 'UTC' + grace_days * interval '24 hours') at time zone 'UTC'))
  where grace_days > 0 and status <> 'revoked';
