import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

// The Postgres of the local bench: an embedded one whose data stays between runs, so that millions of rows are generated once.
// With DATABASE_URL (of a superuser) that server is used instead, and not pinned.
import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import pg from 'pg'

import { fillDatabase } from '../data/fill.ts'
import type { Shape } from '../data/population.ts'
import { pinTree, type CorePlan } from './cores.ts'

export interface BenchPostgres {
  /** Null: a server that was named, of which nothing is known. */
  pid: number | null
  /** The address of a database on it. */
  urlOf(database: string): string
  stop(): Promise<void>
}

// Data that can be made again needs no fsync; a check never writes, so this changes no figure of a check.
const SETTINGS = {
  shared_buffers: '1GB',
  max_wal_size: '16GB',
  fsync: 'off',
  synchronous_commit: 'off',
  max_connections: 200,
  autovacuum: 'off',
}

export async function openPostgres(plan: CorePlan, folder: string): Promise<BenchPostgres> {
  const named = process.env['DATABASE_URL']
  if (named !== undefined && named !== '')
    return { pid: null, urlOf: (database) => withDatabase(named, database), stop: () => Promise.resolve() }
  const server = await startPostgres({ dataFolder: folder, settings: SETTINGS })
  pinTree(server.pid, plan.postgres, plan)
  return { pid: server.pid, urlOf: (database) => withDatabase(server.url, database), stop: () => server.stop() }
}

/** The database that holds this shape; made when it is not there, or was made for other tables. Returns its address. */
export async function openShape(postgres: BenchPostgres, shape: Shape, say: (line: string) => void): Promise<string> {
  const name = `keyward_bench_${shape.licenses}_${shape.rules}_${shape.organizations}_${shape.seed}`
  const mark = JSON.stringify({ ...shape, migrations: migrationsHash() })
  const url = postgres.urlOf(name)
  const admin = new pg.Client({ connectionString: postgres.urlOf('postgres') })
  await admin.connect()
  try {
    const { rows } = await admin.query<{ mark: string | null }>(
      `select shobj_description(oid, 'pg_database') as mark from pg_database where datname = $1`,
      [name],
    )
    if (rows[0]?.mark === mark) return url
    const { licenses, rules } = shape
    say(`generating ${licenses.toLocaleString('en-US')} licenses and ${rules.toLocaleString('en-US')} rules, once`)
    await admin.query(`drop database if exists ${name} with (force)`)
    await admin.query(`create database ${name}`)
    await migrate(url)
    const { seconds } = await fillDatabase(url, shape)
    await admin.query(`comment on database ${name} is ${pg.escapeLiteral(mark)}`)
    await admin.query('checkpoint')
    say(`generated in ${seconds.toFixed(1)} s`)
    return url
  } finally {
    await admin.end()
  }
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.toString()
}

function migrationsHash(): string {
  const folder = join(import.meta.dirname, '../../../packages/database/migrations')
  const hash = createHash('sha256')
  for (const file of readdirSync(folder).toSorted()) hash.update(file).update(readFileSync(join(folder, file)))
  return hash.digest('hex').slice(0, 16)
}
