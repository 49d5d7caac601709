/** Reads the statistics of Postgres about a run: rows written, statements, and bytes on disk and in the write-ahead log. */

import type pg from 'pg'

export interface Figures {
  /** The numbers of rows, insertions and updates, and the bytes on disk with indexes, by table. */
  tables: Record<string, { rows: number; inserted: number; updated: number; bytes: number }>
  /** The number of statements, by purpose. */
  statements: Record<string, number>
  transactions: number
  walBytes: number
  atMs: number
}

const STATEMENTS: Record<string, string> = {
  'slot claims': '%claim_slots(%',
  'slot releases': '%release_slots(%',
  'writing usage': '%write_usage(%',
  'reading the change log': '%feed as materialized%',
  'validator heartbeat': '%note_validator(%',
}

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
  const result: Figures = { tables: {}, statements: {}, transactions: 0, walBytes: 0, atMs: performance.now() }
  for (const { name, ...rest } of tables.rows) {
    const { rows } = await pool.query<{ n: number }>(`select count(*)::float8 as n from ${name}`)
    result.tables[name] = { rows: rows[0]!.n, ...rest }
  }
  for (const [name, like] of Object.entries(STATEMENTS)) result.statements[name] = await callsOf(pool, like)
  result.statements['all, including connecting and measuring'] = await callsOf(pool, '%')
  const totals = await pool.query<{ transactions: number; wal: number }>(
    `select (xact_commit + xact_rollback)::float8 as transactions, (pg_current_wal_lsn() - '0/0')::float8 as wal
     from pg_stat_database where datname = current_database()`,
  )
  result.transactions = totals.rows[0]!.transactions
  result.walBytes = totals.rows[0]!.wal
  return result
}

async function callsOf(pool: pg.Pool, like: string): Promise<number> {
  const { rows } = await pool.query<{ calls: number }>(
    'select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements where query ilike $1',
    [like],
  )
  return rows[0]!.calls
}

export interface Difference {
  seconds: number
  tables: Record<string, { rows: number; inserted: number; updated: number; bytes: number }>
  statementsPerSecond: Record<string, number>
  transactionsPerSecond: number
  walBytes: number
}

/** Returns the growth of the figures between two readings. */
export function difference(before: Figures, after: Figures): Difference {
  const seconds = (after.atMs - before.atMs) / 1_000
  const none = { rows: 0, inserted: 0, updated: 0, bytes: 0 }
  const tables = Object.entries(after.tables).map(([name, now]) => {
    const then = before.tables[name] ?? none
    const grown = {
      rows: now.rows - then.rows,
      inserted: now.inserted - then.inserted,
      updated: now.updated - then.updated,
      bytes: now.bytes - then.bytes,
    }
    return [name, grown] as const
  })
  const perSecond = (name: string): number => ((after.statements[name] ?? 0) - (before.statements[name] ?? 0)) / seconds
  return {
    seconds,
    tables: Object.fromEntries(tables.filter(([, { inserted, updated }]) => inserted + updated > 0)),
    statementsPerSecond: Object.fromEntries(Object.keys(after.statements).map((name) => [name, perSecond(name)])),
    transactionsPerSecond: (after.transactions - before.transactions) / seconds,
    walBytes: after.walBytes - before.walBytes,
  }
}
