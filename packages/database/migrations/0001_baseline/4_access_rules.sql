-- Access rules: blacklists, exclusions and restrictions. Deleting the product or license of a rule's scope, or the customer that the rule
-- names, deletes the rule.

-- Sets of access rules, which are replaced as a whole. Every change of a set's rules, including a manual change,
-- changes the version of the set.
create table access_rule_sets (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  name text not null check (length(name) between 1 and 64),
  version uuid not null default gen_random_uuid(),
  rules integer not null default 0, -- the number of its rules, including expired ones
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint access_rule_sets_name unique (organization_id, name),
  unique (organization_id, id)
);

create table access_rules (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  kind text not null check (kind in ('BLACKLIST', 'EXCLUSION', 'RESTRICTION')),
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
  mode text not null default 'ENFORCE' check (mode in ('ENFORCE', 'MONITOR')),
  set_id uuid,
  foreign key (organization_id, product_id) references products (organization_id, id) on delete cascade,
  foreign key (organization_id, license_id) references licenses (organization_id, id) on delete cascade,
  foreign key (organization_id, customer_id) references customers (organization_id, id) on delete cascade,
  foreign key (organization_id, set_id) references access_rule_sets (organization_id, id) on delete cascade,
  check ((scope = 'PRODUCT') = (product_id is not null)),
  check ((scope = 'LICENSE') = (license_id is not null)),
  check ((type = 'CUSTOMER') = (customer_id is not null)),
  check (kind = 'EXCLUSION' or not allow_suspended_or_expired),
  constraint access_rules_types check (case kind
    when 'EXCLUSION' then type in ('IP', 'HWID')
    when 'RESTRICTION' then type in ('IP', 'HWID', 'COUNTRY')
    else true end),
  constraint access_rules_twin unique nulls not distinct (organization_id, kind, type, value, scope, scope_id)
);
create index access_rules_listing on access_rules (organization_id, id);
create index access_rules_product on access_rules (organization_id, product_id) where product_id is not null;
create index access_rules_license on access_rules (organization_id, license_id) where license_id is not null;
create index access_rules_customer on access_rules (organization_id, customer_id) where customer_id is not null;
-- A list that filters by only some of kind, type and scope reads the newest rules of each matching combination.
create index access_rules_kinds on access_rules (organization_id, kind, type, scope, id);
create index access_rules_values on access_rules (organization_id, type, value, id);
create index access_rules_scope on access_rules (organization_id, scope_id, id) where scope_id is not null;
create index access_rules_monitored on access_rules (organization_id, id) where mode = 'MONITOR';
create index access_rules_set on access_rules (organization_id, set_id, id) where set_id is not null;
create index access_rules_expired on access_rules (organization_id, expires_at);
create index access_rules_expiry on access_rules (expires_at) where expires_at is not null;
create trigger access_rules_sets_inserted after insert on access_rules
  referencing new table as changed for each statement execute function version_sets();
create trigger access_rules_sets_updated after update on access_rules
  referencing new table as changed for each statement execute function version_sets();
create trigger access_rules_sets_deleted after delete on access_rules
  referencing old table as changed for each statement execute function version_sets();

-- The counters are separate from `access_rules`, so that counting a match wakes no validator. A trigger creates the
-- counter with its rule, so that counting only updates a row. The update neither waits for a transaction that has
-- locked the rule nor fails while the rule is being deleted.
create table access_rule_counters (
  rule_id uuid primary key references access_rules on delete cascade,
  match_count bigint not null default 0,
  last_matched_at timestamptz,
  organization_id uuid
) with (fillfactor = 70);
create index access_rule_counters_count on access_rule_counters (organization_id, match_count, rule_id);
create index access_rule_counters_match
  on access_rule_counters (organization_id, (coalesce(last_matched_at, '-infinity'::timestamptz)), rule_id);
create trigger access_rules_counters after insert on access_rules
  referencing new table as new_rows for each statement execute function add_rule_counters();

-- Rules that were folded into their duplicates when two customers were merged. Validators may still write matches of a
-- folded rule. These matches are added to the counters of the rule that was kept.
create table folded_rules (
  gone uuid primary key,
  kept uuid not null references access_rules on delete cascade,
  folded_at timestamptz not null default now()
);
create index folded_rules_kept on folded_rules (kept);
create index folded_rules_age on folded_rules (folded_at);
