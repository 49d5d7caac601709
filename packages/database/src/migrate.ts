/**
 * Migrates a database forward to the schema of this version. Each entry of migrations/ is applied once, in the order of the names. Every run
 * applies functions/ and grants.sql again, in the transaction of the migrations. Any number of processes may migrate at the same time,
 * because a lock serializes them.
 */

import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

import { isConnectionFailure, isLockTimeout } from './errors.ts'
import { connectionTo } from './hosts.ts'
import { listFunctions, listMigrations, type Migration, SCHEMA_FOLDER } from './migrations.ts'
import { runOnlineSteps } from './online-steps.ts'

const CONNECT_TIMEOUT_MS = 5_000
/** The time without data after which the connection is probed. Probes fail after another ten seconds. */
const KEEP_ALIVE_MS = 10_000
const LOCK = 7_201_945_338
const LOCK_RETRY_MS = 50
/** The time for which requests may have to wait, because they queue behind a migration that waits for its locks. */
const LOCK_WAIT_MS = 200
/** The pause after a failed attempt. Meanwhile, the requests that queued behind the attempt continue. */
const PAUSE_MS = 1_000
/**
 * After this number of failed attempts, every tenth wait is longer, because Postgres cancels an autovacuum only for a wait of more than a
 * second.
 */
const MANY_FAILURES = 30
const LONG_LOCK_WAIT_MS = 1_200
/** The time after which the migration stops retrying to lock tables that other transactions keep locked. */
const LOCK_LIMIT_MS = 600_000
const OLDEST_SERVER = 150_000
const EARLIER_HISTORY =
  'The database was migrated by a version from before 0001_baseline, and this version cannot continue its migrations. ' +
  'Keep that version, or follow "From a version before 0001_baseline" in CHANGELOG.md.'
interface MigrationReport {
  /** The names of the migrations that this call applied. */
  readonly applied: readonly string[]
  /** Warnings for an administrator, such as a role that could not be created. */
  readonly warnings: readonly string[]
}

/** Reports that the database has a migration of a newer version. Services of this version can use the database, but cannot migrate it. */
export class NewerSchemaError extends Error {
  /** The name of the first unknown migration. */
  readonly migration: string

  constructor(migration: string) {
    super(`The database was migrated by a newer version of Keyward (${migration}); this version cannot migrate it`)
    this.name = 'NewerSchemaError'
    this.migration = migration
  }
}

/**
 * Migrates the database at `url`. Throws an error with a message for operators when the server is too old, and NewerSchemaError when the
 * database belongs to a newer version. A run after a broken connection continues with the first incomplete step. Tests give the `schema`
 * folder of another version.
 */
export async function migrate(url: string, schema = SCHEMA_FOLDER): Promise<MigrationReport> {
  const client = new pg.Client({
    ...connectionTo(url),
    application_name: 'keyward migrate',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    // Long statements have no timeout. Probes detect a server that disappears meanwhile, as during a failover.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  })
  // The connection can break between two statements, and then only this event contains the reason.
  let broken: Error | undefined
  client.on('error', (error) => void (broken ??= error))
  const warnings: string[] = []
  client.on('notice', (notice) => {
    if (notice.severity === 'WARNING' && notice.message !== undefined) warnings.push(notice.message)
  })
  try {
    await client.connect()
    await requireServer(client)
    await takeLock(client)
    const applied = await migrateToLatest(client, schema)
    await runOnlineSteps(client)
    await client.query('select pg_advisory_unlock($1)', [LOCK])
    return { applied, warnings }
  } catch (error) {
    if (broken === undefined || !isConnectionFailure(error)) throw error
    throw new Error(`The connection to Postgres broke during the migration: ${broken.message}`, { cause: error })
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Takes the lock with repeated short statements, because creating an index waits for every running statement. */
async function takeLock(client: pg.ClientBase): Promise<void> {
  const isTaken = async (): Promise<boolean> =>
    (await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [LOCK])).rows[0]?.taken === true
  while (!(await isTaken())) await sleep(LOCK_RETRY_MS)
}

/** Applies the missing migrations, the functions and the grants in one transaction. If its tables cannot be locked, retries. */
async function migrateToLatest(client: pg.ClientBase, schema: URL): Promise<string[]> {
  const missing = await listMissing(client, schema)
  const texts = await Promise.all(missing.flatMap(({ files }) => files.map((file) => readFile(file, 'utf8'))))
  const endMs = performance.now() + LOCK_LIMIT_MS
  for (let failures = 0; ; failures++) {
    const isLong = failures >= MANY_FAILURES && failures % 10 === 0
    await client.query('begin')
    try {
      await lockTables(client, texts.join('\n'), isLong ? LONG_LOCK_WAIT_MS : LOCK_WAIT_MS)
      await applyFiles(client, missing, schema)
      await client.query('commit')
      return missing.map(({ name }) => name)
    } catch (error) {
      // A rollback fails only on a broken connection, and Postgres rolls back then.
      await client.query('rollback').catch(() => undefined)
      if (!isLockTimeout(error) || performance.now() > endMs) throw error
    }
    await sleep(PAUSE_MS)
  }
}

async function applyFiles(client: pg.ClientBase, missing: readonly Migration[], schema: URL): Promise<void> {
  await client.query(
    'create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())',
  )
  // Tables need functions, and the bodies of functions name tables and columns that the migrations create.
  await client.query('set local check_function_bodies = off')
  for (const file of await listFunctions(schema)) await applyFile(client, file)
  for (const { name, files } of missing) {
    for (const file of files) await applyFile(client, file)
    await client.query('insert into migrations (name) values ($1)', [name])
  }
  await applyFile(client, new URL('grants.sql', schema))
}

async function applyFile(client: pg.ClientBase, file: URL): Promise<void> {
  try {
    await client.query(await readFile(file, 'utf8'))
  } catch (error) {
    if (isLockTimeout(error)) throw error
    const name = file.pathname.split('/').at(-1)
    const reason = error instanceof Error ? error.message : 'no reason is known'
    throw new Error(`The database could not be migrated, ${name} failed: ${reason}`, { cause: error })
  }
}

/** Matches the names that may be tables, with the words before them. A migration locks the tables among these names. */
const LOCKED = /\b(?:alter table|on|references)\s+(\w+)/g

/**
 * Locks all existing tables that the migrations name before they change any of them. Locking them one by one during the migrations
 * could deadlock with a transaction that uses another order. The wait is limited, because requests that need the tables queue behind it.
 * Throws an error with SQLSTATE 55P03 if the tables are not locked within `waitMs`.
 */
async function lockTables(client: pg.ClientBase, migrations: string, waitMs: number): Promise<void> {
  const statements = migrations.replaceAll(/--.*$/gm, '')
  const named = [...statements.matchAll(LOCKED)].map(([, name = '']) => name)
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and relname = any ($1)
     order by relname`,
    [named],
  )
  if (rows.length === 0) return
  const tables = rows.map(({ name }) => name).join(', ')
  await client.query(`set local lock_timeout = ${waitMs}`)
  await client.query(`lock table ${tables} in access exclusive mode`)
  await client.query('set local lock_timeout = 0')
}

async function requireServer(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ number: string; text: string }>(
    `select current_setting('server_version_num') as number, current_setting('server_version') as text`,
  )
  if (Number(rows[0]?.number) < OLDEST_SERVER)
    throw new Error(`Keyward needs Postgres 15 or newer; this server is ${rows[0]?.text}`)
}

/** Returns the migrations that the database lacks. Throws if the database has a history that this version cannot continue. */
async function listMissing(client: pg.ClientBase, schema: URL): Promise<Migration[]> {
  const has = async (table: string): Promise<boolean> =>
    (await client.query('select from pg_tables where schemaname = current_schema() and tablename = $1', [table]))
      .rowCount === 1
  const known = await listMigrations(schema)
  if (!(await has('migrations'))) {
    if (await has('kysely_migration')) throw new Error(EARLIER_HISTORY)
    return known
  }
  const { rows } = await client.query<{ name: string }>('select name from migrations order by name')
  const unknown = rows.find(({ name }) => known.every((migration) => migration.name !== name))
  if (unknown !== undefined) throw new NewerSchemaError(unknown.name)
  const applied = new Set(rows.map(({ name }) => name))
  return known.filter(({ name }) => !applied.has(name))
}
