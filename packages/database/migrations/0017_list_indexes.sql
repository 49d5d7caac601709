-- Indexes for the filters of lists and for the lookups of deletions and merges. With them, a request reads neither the
-- rows of other organizations nor all rows of its own. Creating the indexes delays writes to these tables, but no
-- check, because validators keep their counts and alerts in memory meanwhile.

create index licenses_status on licenses (organization_id, status, id);
create index licenses_expiry on licenses (organization_id, expires_at, id) where status = 'active' and expires_at is not null;

-- A list that filters by only some of kind, type and scope reads the newest rules of each matching combination.
create index access_rules_kinds on access_rules (organization_id, kind, type, scope, id);
create index access_rules_values on access_rules (organization_id, type, value, id);
create index access_rules_scope on access_rules (organization_id, scope_id, id) where scope_id is not null;
create index access_rules_expired on access_rules (organization_id, expires_at);

create index credentials_valid on credentials (organization_id, kind, id) where revoked_at is null;
create index merged_customers_into on merged_customers (organization_id, merged_into);
create index alerts_license on alerts (license_id);
create index check_counts_organization on check_counts (organization_id, hour);
