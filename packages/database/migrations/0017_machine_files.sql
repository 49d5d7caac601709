-- Without `file_days`, a file is valid for 30 days, or as long as a lease. An online step removes the former default from licenses with leases.
alter table licenses alter column file_days drop not null, alter column file_days drop default;
alter table license_templates alter column file_days drop not null;
update license_templates set file_days = null where file_days = 30 and lease_seconds is not null;
-- Until the end of its file, a machine keeps its slot.
alter table machines add column file_ends_at timestamptz;
