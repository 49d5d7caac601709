-- Each change of a row results in a new version of the resource (docs/api.md#m18).
create trigger organizations_version before update on organizations for each row execute function next_version();
create trigger members_version before update on members for each row execute function next_version();
create trigger products_version before update on products for each row execute function next_version();
create trigger customers_version before update on customers for each row execute function next_version();
create trigger licenses_version before update on licenses for each row execute function next_version();
create trigger access_rules_version before update on access_rules for each row execute function next_version();
-- Deliveries also write the columns of their failures and secrets.
create trigger webhook_endpoints_version before update of url, types, description, enabled, disabled_reason on webhook_endpoints
  for each row execute function next_version();
