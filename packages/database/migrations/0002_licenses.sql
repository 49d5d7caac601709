-- Products, customers, licenses and the machines that hold their slots.
-- Foreign keys between resources contain the organization, so that a row cannot refer to a row of another organization.

create table products (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  name text not null,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, id)
);

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

-- Customers that were merged into other customers.
create table merged_customers (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  merged_into uuid not null,
  merged_at timestamptz not null default now()
);

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
  unique (organization_id, key),
  unique (organization_id, id),
  foreign key (organization_id, product_id) references products (organization_id, id),
  foreign key (organization_id, customer_id) references customers (organization_id, id),
  check ((policy_type = 'PERPETUAL') = (expires_at is null))
);
create index licenses_product on licenses (organization_id, product_id, id);
create index licenses_customer on licenses (organization_id, customer_id, id);

-- The number of taken slots of a license, which is the number of its machines. Claims, releases and changes of the
-- limit lock this row and never the row in `licenses`. So a claim neither wakes the validators nor waits for a
-- transaction that has locked the license.
create table license_slots (
  license_id uuid primary key references licenses on delete cascade,
  used integer not null default 0 check (used >= 0),
  -- For a license without a limit: the number of times that a machine was not recorded, because the maximum was reached.
  unrecorded bigint not null default 0
) with (fillfactor = 70);

create function add_license_slots() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  insert into license_slots (license_id) select id from new_rows;
  return null;
end $$;
create trigger licenses_slots after insert on licenses
  referencing new table as new_rows for each statement execute function add_license_slots();

-- Locks the slots of a license whose limit changes, so the limit changes only while no claim of the license is in
-- progress.
create function lock_license_slots() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  perform from license_slots where license_id = new.id for no key update;
  return new;
end $$;
create trigger licenses_limit before update of max_machines on licenses
  for each row when (old.max_machines is distinct from new.max_machines) execute function lock_license_slots();

-- A machine id is stored as the bytes that the app sent, so that no collation or encoding makes two different ids
-- equal.
create table machines (
  id uuid not null,
  license_id uuid not null references license_slots on delete cascade,
  machine_id bytea not null check (length(machine_id) between 1 and 512),
  hostname text,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  primary key (license_id, machine_id)
) with (fillfactor = 90);
create unique index machines_listing on machines (license_id, id);

create function refuse_update() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  raise exception 'A machine keeps its license and its machine id; delete it and insert another';
end $$;
create trigger machines_identity before update of license_id, machine_id on machines
  for each row when ((old.license_id, old.machine_id) is distinct from (new.license_id, new.machine_id))
  execute function refuse_update();
