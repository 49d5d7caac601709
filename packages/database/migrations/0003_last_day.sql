-- The time of the first entry of activity for each license, machine and day, so that later ones of the day are counted in it. The id is
-- computed from these three (daily_entry.sql), and begins with the day, so that retention finds old rows.
create table daily_entries (
  id uuid primary key,
  at timestamptz not null
);

-- The checks that each monitored rule has matched in each hour of the last two days.
create table monitored_matches (
  rule_id uuid not null,
  hour timestamptz not null,
  count bigint not null,
  primary key (rule_id, hour)
);
create index monitored_matches_hour on monitored_matches (hour);
