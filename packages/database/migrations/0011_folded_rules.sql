-- Rules that were folded into others when their customers were merged. Validators may have matched such a rule and not yet
-- written it down: what they count for it from then on belongs to the rule that was kept.

create table folded_rules (
  gone uuid primary key,
  kept uuid not null references access_rules on delete cascade,
  folded_at timestamptz not null default now()
);
create index folded_rules_kept on folded_rules (kept);

-- The names are looked up again for counting: locking may have waited for the very transaction that folds.
create or replace function write_rule_counts(rows jsonb) returns void language plpgsql set search_path = public, pg_temp as $$
begin
  perform from access_rule_counters
  where rule_id in (
    select coalesce(f.kept, r.id) from jsonb_to_recordset(rows) as r (id uuid) left join folded_rules f on f.gone = r.id)
  order by rule_id for no key update;
  update access_rule_counters c
  set match_count = c.match_count + m.count, last_matched_at = greatest(c.last_matched_at, m.at)
  from (
    select coalesce(f.kept, r.id) as id, sum(r.count)::bigint as count, sane_time(to_timestamp(max(r.at) / 1000)) as at
    from jsonb_to_recordset(rows) as r (id uuid, count bigint, at float8) left join folded_rules f on f.gone = r.id group by 1
  ) m
  where c.rule_id = m.id;
end $$;
