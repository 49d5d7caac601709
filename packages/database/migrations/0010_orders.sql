-- Which prices of shops sell a template, and what its orders do.
alter table license_templates
  add column price_ids text[] not null default '{}' check (array_position(price_ids, null) is null),
  add column orders jsonb not null default '{"quantity": "licenses", "refund": "revoke", "dispute": "suspend"}';
create index license_templates_prices on license_templates using gin (price_ids);

-- One line of an order of a shop. The primary key makes requests about it idempotent. `license_ids` may contain ids of deleted licenses.
create table orders (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  provider text not null,
  order_id text not null,
  line text not null,
  template_id uuid not null,
  state text not null check (state in ('paid', 'canceled', 'refunded', 'disputed')),
  quantity integer not null check (quantity between 1 and 100),
  paid_through timestamptz,
  occurred_at timestamptz not null,
  license_ids uuid[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, provider, order_id, line)
);
create index orders_recent on orders (organization_id, id);
