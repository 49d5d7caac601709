/**
 * Provides the Postgres of `npm run bench:local`. The embedded server keeps its data, so that millions of rows are generated only once. If
 * DATABASE_URL (of a superuser) is set, that server is used instead and is not pinned.
 */

import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import pg from 'pg'

import { fillDatabase } from '../data/fill.ts'
import type { Shape } from '../data/population.ts'
import { pinTree, type CorePlan } from './cores.ts'

export interface BenchPostgres {
  /** The process id of the server, or null for the server of DATABASE_URL. */
  pid: number | null
  /** Returns the URL of a database on this server. */
  urlOf(database: string): string
  stop(): Promise<void>
}

/**
 * The settings of the embedded server. fsync is off, because lost data can be generated again and checks of known machines do not commit.
 */
const SETTINGS = {
  shared_buffers: '1GB',
  max_wal_size: '16GB',
  fsync: 'off',
  synchronous_commit: 'off',
  max_connections: 200,
  autovacuum: 'off',
}

export async function openPostgres(plan: CorePlan, folder: string): Promise<BenchPostgres> {
  const given = process.env['DATABASE_URL']
  if (given !== undefined && given !== '')
    return { pid: null, urlOf: (database) => withDatabase(given, database), stop: () => Promise.resolve() }
  const server = await startPostgres({ dataFolder: folder, settings: SETTINGS })
  pinTree(server.pid, plan.postgres, plan)
  return { pid: server.pid, urlOf: (database) => withDatabase(server.url, database), stop: () => server.stop() }
}

/** Returns the URL of the database with this shape. Generates the database if it is missing or was generated with another schema. */
export async function openShape(postgres: BenchPostgres, shape: Shape, log: (line: string) => void): Promise<string> {
  const name = `keyward_bench_${shape.licenses}_${shape.rules}_${shape.organizations}_${shape.seed}`
  const mark = JSON.stringify({ ...shape, schema: schemaHash() })
  const url = postgres.urlOf(name)
  const admin = new pg.Client({ connectionString: postgres.urlOf('postgres') })
  await admin.connect()
  try {
    const { rows } = await admin.query<{ mark: string | null }>(
      `select shobj_description(oid, 'pg_database') as mark from pg_database where datname = $1`,
      [name],
    )
    if (rows[0]?.mark === mark) {
      await vacuum(url)
      return url
    }
    const { licenses, rules } = shape
    log(`generating ${licenses.toLocaleString('en-US')} licenses and ${rules.toLocaleString('en-US')} rules, once`)
    await admin.query(`drop database if exists ${name} with (force)`)
    await admin.query(`create database ${name}`)
    await migrate(url)
    const { seconds } = await fillDatabase(url, shape)
    await admin.query(`comment on database ${name} is ${pg.escapeLiteral(mark)}`)
    await admin.query('checkpoint')
    log(`generated in ${seconds.toFixed(1)} s`)
    return url
  } finally {
    await admin.end()
  }
}

/**
 * Frees the space of rows that earlier scenarios have changed. Without it, the recording of usage takes longer in each scenario, because
 * autovacuum is off.
 */
async function vacuum(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('vacuum (analyze)')
  } finally {
    await client.end()
  }
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.toString()
}

/** Returns a hash of all statements that `migrate` runs. */
function schemaHash(): string {
  const folder = join(import.meta.dirname, '../../../packages/database')
  const hash = createHash('sha256')
  for (const file of globSync(['migrations/**/*.sql', 'functions/**/*.sql', '*.sql'], { cwd: folder }).toSorted())
    hash.update(file).update(readFileSync(join(folder, file)))
  return hash.digest('hex').slice(0, 16)
}
