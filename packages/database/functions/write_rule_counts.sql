-- Adds to the counters of access rules, and to the hourly counters of monitored rules. Matches of a rule that was folded count for the rule that was kept. Resolves the ids again until
-- they equal the ids of the locked rows, because locking may have waited for a transaction that folded rules. Once they are equal, no other
-- transaction can fold these rules, because folding needs the same locks.
create or replace function write_rule_counts(rows jsonb) returns void language plpgsql set search_path = public, pg_temp as $$
declare
  named uuid[];
  locked uuid[];
begin
  loop
    select array_agg(coalesce(f.kept, r.id) order by coalesce(f.kept, r.id)) into named
    from jsonb_to_recordset(rows) as r (id uuid) left join folded_rules f on f.gone = r.id;
    exit when named is not distinct from locked;
    perform from access_rule_counters where rule_id = any (named) order by rule_id for no key update;
    locked := named;
  end loop;
  update access_rule_counters c
  set match_count = c.match_count + m.count, last_matched_at = greatest(c.last_matched_at, m.at)
  from (
    select coalesce(f.kept, r.id) as id, sum(r.count)::bigint as count, sane_time(to_timestamp(max(r.at) / 1000)) as at
    from jsonb_to_recordset(rows) as r (id uuid, count bigint, at float8) left join folded_rules f on f.gone = r.id group by 1
  ) m
  where c.rule_id = m.id;
  insert into monitored_matches (rule_id, hour, count)
  select r.id, date_trunc('hour', sane_time(to_timestamp(max(m.at) / 1000)), 'UTC'), sum(m.count)
  from jsonb_to_recordset(rows) as m (id uuid, count bigint, at float8)
    left join folded_rules f on f.gone = m.id
    join access_rules r on r.id = coalesce(f.kept, m.id) and r.mode = 'MONITOR'
  group by r.id order by r.id
  on conflict (rule_id, hour) do update set count = monitored_matches.count + excluded.count;
end $$;
