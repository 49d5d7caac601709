-- Actions on many licenses. A job handles its licenses in the order of their ids. `after` is the last one of the running pass, and `problem`
-- the quota that the job waits for. A job without `ended_at` runs.
create table license_jobs (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  action jsonb not null,
  actor jsonb not null,
  state text not null default 'running' check (state in ('running', 'completed', 'canceled', 'undoing', 'undone')),
  total integer not null,
  done integer not null default 0,
  changed integer not null default 0,
  skipped integer not null default 0,
  failed integer not null default 0,
  restored integer not null default 0,
  kept integer not null default 0,
  errors jsonb not null default '[]',
  after uuid,
  problem text,
  created_at timestamptz not null default now(),
  ended_at timestamptz
);
create index license_jobs_listing on license_jobs (organization_id, id);
create index license_jobs_running on license_jobs (organization_id) where ended_at is null;
create index license_jobs_ended on license_jobs (ended_at) where ended_at is not null;

-- The licenses that a job selected when it started. `before` contains the values that the job replaced, and `version` is the version of the
-- license after that change. An undo restores a license with this version.
create table license_job_rows (
  job_id uuid not null references license_jobs on delete cascade,
  license_id uuid not null,
  version timestamptz,
  before jsonb,
  primary key (job_id, license_id)
);
