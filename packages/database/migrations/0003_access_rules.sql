-- Access rules: blacklists and exclusions. Deleting the product or license of a rule's scope, or the customer that the
-- rule names, deletes the rule.

create table access_rules (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  kind text not null check (kind in ('BLACKLIST', 'EXCLUSION')),
  type text not null check (type in ('IP', 'HWID', 'COUNTRY', 'CUSTOMER')),
  -- The canonical value as UTF-8 bytes. A machine id may contain NUL, which `text` cannot store.
  value bytea not null check (length(value) between 1 and 512),
  scope text not null check (scope in ('LICENSE', 'PRODUCT', 'ORGANIZATION')),
  product_id uuid,
  license_id uuid,
  scope_id uuid generated always as (coalesce(license_id, product_id)) stored,
  customer_id uuid,
  note text,
  expires_at timestamptz,
  allow_suspended_or_expired boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  created_by jsonb not null,
  foreign key (organization_id, product_id) references products (organization_id, id) on delete cascade,
  foreign key (organization_id, license_id) references licenses (organization_id, id) on delete cascade,
  foreign key (organization_id, customer_id) references customers (organization_id, id) on delete cascade,
  check ((scope = 'PRODUCT') = (product_id is not null)),
  check ((scope = 'LICENSE') = (license_id is not null)),
  check ((type = 'CUSTOMER') = (customer_id is not null)),
  check (kind = 'BLACKLIST' or type in ('IP', 'HWID')),
  check (kind = 'EXCLUSION' or not allow_suspended_or_expired),
  constraint access_rules_twin unique nulls not distinct (organization_id, kind, type, value, scope, scope_id)
);
create index access_rules_listing on access_rules (organization_id, id);
create index access_rules_product on access_rules (organization_id, product_id) where product_id is not null;
create index access_rules_license on access_rules (organization_id, license_id) where license_id is not null;
create index access_rules_customer on access_rules (organization_id, customer_id) where customer_id is not null;

-- The counters are separate from `access_rules`, so that counting a match wakes no validator. A trigger creates the
-- counter with its rule, so that counting only updates a row. The update neither waits for a transaction that has
-- locked the rule nor fails while the rule is being deleted.
create table access_rule_counters (
  rule_id uuid primary key references access_rules on delete cascade,
  match_count bigint not null default 0,
  last_matched_at timestamptz
) with (fillfactor = 70);

create function add_rule_counters() returns trigger language plpgsql
  security definer set search_path = public, pg_temp as $$
begin
  insert into access_rule_counters (rule_id) select id from new_rows;
  return null;
end $$;
create trigger access_rules_counters after insert on access_rules
  referencing new table as new_rows for each statement execute function add_rule_counters();
