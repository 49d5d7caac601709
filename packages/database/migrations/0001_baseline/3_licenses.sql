-- Products, customers, licenses and the machines that hold their slots.
-- Foreign keys between resources contain the organization, so that a row cannot refer to a row of another organization.

-- For searching customers by a part of their email, name or external id. Both extensions are part of Postgres and trusted, so the owner of
-- the database may create them.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;

create table products (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  name text not null,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  entitlements jsonb, -- null when there are none
  constraint products_entitlements check (are_entitlements(entitlements, false)),
  unique (organization_id, id)
);
create trigger products_revoke_keys after delete on products referencing old table as old_rows
  for each statement execute function revoke_keys_of_products();

create table customers (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  email text not null,
  name text,
  external_id text,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id),
  unique (organization_id, external_id)
);
create index customers_email on customers (organization_id, lower(email));
create index customers_search on customers using gin (organization_id, customer_text(email, name, external_id) gin_trgm_ops);

-- Customers that were merged into other customers.
create table merged_customers (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  merged_into uuid not null,
  merged_at timestamptz not null default now()
);
create index merged_customers_into on merged_customers (organization_id, merged_into);
create index merged_customers_age on merged_customers (merged_at);

-- A license with `duration_days` and without `expires_at` has not started: its first VALID check sets `expires_at`.
create table licenses (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  product_id uuid not null,
  customer_id uuid not null,
  key text not null,
  status text not null default 'active' check (status in ('active', 'suspended', 'revoked')),
  policy_type text not null check (policy_type in ('PERPETUAL', 'SUBSCRIPTION', 'TRIAL')),
  max_machines integer check (max_machines >= 1),
  expires_at timestamptz,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  suspended_at timestamptz,
  revoked_at timestamptz,
  entitlements jsonb, -- null when there are none
  duration_days integer check (duration_days between 1 and 36500),
  max_releases integer check (max_releases between 0 and 1000),
  lease_seconds integer check (lease_seconds between 60 and 31622400),
  constraint licenses_term check ((policy_type = 'PERPETUAL') = (expires_at is null and duration_days is null)),
  constraint licenses_entitlements check (are_entitlements(entitlements, true)),
  unique (organization_id, key),
  unique (organization_id, id),
  foreign key (organization_id, product_id) references products (organization_id, id),
  foreign key (organization_id, customer_id) references customers (organization_id, id)
);
create index licenses_product on licenses (organization_id, product_id, id);
create index licenses_customer on licenses (organization_id, customer_id, id);
create index licenses_status on licenses (organization_id, status, id);
create index licenses_key_search on licenses (organization_id, (upper(replace(key, ' ', '')) collate "C"));
create index licenses_entitlements on licenses (product_id, octet_length(entitlements::text)) where entitlements is not null;
create index licenses_expiry on licenses (organization_id, expires_at, id) where status = 'active' and expires_at is not null;
create index licenses_listed_by_expiry on licenses (organization_id, (coalesce(expires_at, 'infinity'::timestamptz)), id);
create index licenses_by_expiry on licenses (expires_at) where expires_at is not null;
create index licenses_not_started on licenses (id) where duration_days is not null and expires_at is null;
create index licenses_leased on licenses (id) where lease_seconds is not null and max_machines is not null;

-- Licenses that have been used, so that the first use of each is one event.
create table used_licenses (license_id uuid primary key references licenses on delete cascade);

-- The number of taken slots of a license, which is the number of its machines. Claims, releases and changes of the
-- limit lock this row and never the row in `licenses`. So a claim neither wakes the validators nor waits for a
-- transaction that has locked the license.
create table license_slots (
  license_id uuid primary key references licenses on delete cascade,
  used integer not null default 0 check (used >= 0),
  -- For a license without a limit: the number of times that a machine was not recorded, because the maximum was reached.
  unrecorded bigint not null default 0
) with (fillfactor = 70);
create trigger licenses_slots after insert on licenses
  referencing new table as new_rows for each statement execute function add_license_slots();
create trigger licenses_limit before update of max_machines on licenses
  for each row when (old.max_machines is distinct from new.max_machines) execute function lock_license_slots();
create trigger licenses_leases after update of lease_seconds, max_machines on licenses for each row
  when ((old.lease_seconds is null or old.max_machines is null) is distinct from (new.lease_seconds is null or new.max_machines is null))
  execute function change_leases();

-- A machine id is stored as the bytes that the app sent, so that no collation or encoding makes two different ids
-- equal.
create table machines (
  id uuid not null,
  license_id uuid not null references license_slots on delete cascade,
  machine_id bytea not null check (length(machine_id) between 1 and 512),
  hostname text,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  -- The end of a machine's lease, or null if the machine holds its slot until the release. A machine whose lease has ended holds no slot,
  -- and the next claim of its license deletes the row.
  lease_ends_at timestamptz,
  organization_id uuid,
  primary key (license_id, machine_id)
) with (fillfactor = 90);
create unique index machines_listing on machines (license_id, id);
create index machines_leases on machines (license_id, lease_ends_at) where lease_ends_at is not null;
create index machines_by_machine_id on machines (organization_id, machine_id, id);
create index machines_by_hostname on machines (organization_id, (lower(hostname) collate "C"), id) where hostname is not null;
create trigger machines_organization before insert on machines
  for each row when (new.organization_id is null) execute function set_organization_of_machine();
create trigger machines_identity before update of license_id, machine_id on machines
  for each row when ((old.license_id, old.machine_id) is distinct from (new.license_id, new.machine_id))
  execute function refuse_update();
create trigger machines_added after insert on machines
  referencing new table as changed for each statement execute function log_machines();
create trigger machines_removed after delete on machines
  referencing old table as changed for each statement execute function log_machines();
create trigger machines_noted_added after insert on machines
  referencing new table as changed for each statement execute function note_machines();
create trigger machines_noted_deleted after delete on machines
  referencing old table as changed for each statement execute function note_machines();

-- The times at which apps released slots of licenses with `max_releases` in the last 30 days. A license never has more
-- rows than the largest `max_releases` that it has had.
create table slot_releases (
  license_id uuid not null references license_slots on delete cascade,
  at timestamptz not null default now()
);
create index slot_releases_license on slot_releases (license_id, at);
