/** Reads the statistics of Postgres about a run: rows written, statements, and bytes on disk and in the write-ahead log. */

import type pg from 'pg'

/** The patterns of statements, by purpose. */
const STATEMENTS: Record<string, string> = {
  'slot claims': '%claim_slots(%',
  'slot releases': '%release_slots(%',
  'writing usage': '%write_usage(%',
  'reading the change log': '%feed as materialized%',
  'validator heartbeat': '%note_validator(%',
  'all, including connecting and measuring': '%',
}

/** Figures by name, such as `machines: rows` or `statements: slot claims`. */
type Figures = Record<string, number>

/** Reads the current figures. The figures of a table are the sums over its partitions. */
export async function readFigures(pool: pg.Pool): Promise<Figures> {
  await pool.query('select pg_stat_force_next_flush()')
  const tables = await pool.query<{ name: string; inserted: number; updated: number; bytes: number }>(
    `select coalesce(p.relname, c.relname) as name, sum(s.n_tup_ins)::float8 as inserted, sum(s.n_tup_upd)::float8 as updated,
       sum(pg_total_relation_size(c.oid))::float8 as bytes
     from pg_class c join pg_stat_user_tables s on s.relid = c.oid
       left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
     group by 1 having sum(s.n_tup_ins + s.n_tup_upd) > 0 order by 1`,
  )
  const figures: Figures = {}
  for (const { name, ...counts } of tables.rows) {
    figures[`${name}: rows`] = await number(pool, `select count(*)::float8 as n from ${name}`)
    for (const [count, value] of Object.entries(counts)) figures[`${name}: ${count}`] = value
  }
  for (const [purpose, like] of Object.entries(STATEMENTS))
    figures[`statements: ${purpose}`] = await number(
      pool,
      'select coalesce(sum(calls), 0)::float8 as n from pg_stat_statements where query ilike $1',
      [like],
    )
  figures['transactions'] = await number(
    pool,
    'select (xact_commit + xact_rollback)::float8 as n from pg_stat_database where datname = current_database()',
  )
  figures['write-ahead log: bytes'] = await number(pool, `select (pg_current_wal_lsn() - '0/0')::float8 as n`)
  return figures
}

async function number(pool: pg.Pool, query: string, values: readonly string[] = []): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(query, [...values])
  return rows[0]!.n
}

/** Returns the growth of the figures between two readings, without figures that did not change. */
export function difference(before: Figures, after: Figures): Figures {
  const grown = Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)] as const)
  return Object.fromEntries(grown.filter(([, value]) => value !== 0))
}
