-- Products, customers, licenses and the machines that hold their slots.
-- Foreign keys carry the organization, so that a row can never point into another tenant.

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

-- What is left of a customer that was merged into another: its id answers where it went.
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

-- How many slots of a license are taken. Claims, releases and limit changes lock this row, never `licenses`:
-- a claim must not wake the listeners of `licenses`.
create table license_slots (
  license_id uuid primary key references licenses on delete cascade,
  used integer not null default 0 check (used >= 0)
);

-- A machine id is the bytes that the app sent, so that no collation or encoding makes two of them one.
create table machines (
  id uuid not null unique,
  license_id uuid not null references licenses on delete cascade,
  machine_id bytea not null check (length(machine_id) between 1 and 512),
  hostname text,
  first_seen_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  primary key (license_id, machine_id)
);
create index machines_listing on machines (license_id, id);
