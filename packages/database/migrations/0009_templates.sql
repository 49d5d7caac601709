-- The terms of a kind of license, which are copied into the licenses that are issued with the template. `former` contains, by field, the
-- values that the template had since it was last applied to its licenses. `application` is the progress of the latest application.
create table license_templates (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  product_id uuid not null,
  name text not null,
  policy_type text not null check (policy_type in ('PERPETUAL', 'SUBSCRIPTION', 'TRIAL')),
  max_machines integer check (max_machines >= 1),
  duration_days integer check (duration_days between 1 and 36500),
  max_releases integer check (max_releases between 0 and 1000),
  lease_seconds integer check (lease_seconds between 60 and 31622400),
  grace_days integer not null check (grace_days between 0 and 90),
  file_days integer not null check (file_days between 1 and 366),
  entitlements jsonb, -- null when there are none
  metadata jsonb not null default '{}',
  former jsonb not null default '{}',
  application jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint license_templates_term check (policy_type <> 'PERPETUAL' or duration_days is null),
  constraint license_templates_entitlements check (are_entitlements(entitlements, true)),
  unique (organization_id, product_id, id),
  foreign key (organization_id, product_id) references products (organization_id, id) on delete cascade
);
create index license_templates_running on license_templates (id)
  where application is not null and application ->> 'endedAt' is null;

-- The foreign key contains the product, so a license has a template of its own product.
alter table licenses
  add column template_id uuid,
  add column external_id text,
  add constraint licenses_template_fkey foreign key (organization_id, product_id, template_id)
    references license_templates (organization_id, product_id, id);
create index licenses_template on licenses (organization_id, template_id, id) where template_id is not null;
create unique index licenses_external_id on licenses (organization_id, external_id) where external_id is not null;
