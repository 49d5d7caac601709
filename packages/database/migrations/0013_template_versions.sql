-- Each change of a template results in a new version of it (docs/api.md#m18). Its application to licenses does not.
create trigger license_templates_version before update of name, policy_type, max_machines, duration_days, max_releases, lease_seconds, grace_days,
  file_days, entitlements, metadata, price_ids, orders on license_templates for each row execute function next_version();
