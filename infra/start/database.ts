/**
 * Provides the database of `npm start`: the one that KEYWARD_DATABASE_URL names, or an embedded Postgres with its data in
 * `.keyward/`. The database is migrated before a service connects. In an embedded Postgres, each service uses a restricted
 * role.
 */

import { join } from 'node:path'

import { createPool } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { ConfigError, explainStart } from '@keyward/runtime'

import { ensureServiceLogins } from '../shared/logins.ts'
import { FOLDER } from './state.ts'
import { supervise } from './supervisor.ts'

export interface StartDatabase {
  /** The database URL with the login of the tables' owner, for migrations and for `demo.json`. */
  url: string
  /** The database URL with the login of management. */
  managementUrl: string
  /** The database URL with the login of validators. */
  validatorUrl: string
  stop: () => Promise<void>
}

/** The database URLs from the environment. */
interface DatabaseUrls {
  DATABASE_URL?: string | undefined
  VALIDATOR_DATABASE_URL?: string | undefined
}

const DATABASE = 'keyward'
const LOGIN_PREFIX = 'keyward_embedded'

/**
 * Starts or connects to the database and migrates it. `parent` is the folder that contains `.keyward/`. After a crash, an
 * embedded Postgres restarts on the same port. Rejects with ConfigError if the database that KEYWARD_DATABASE_URL names cannot be
 * used.
 */
export async function startDatabase(
  given: DatabaseUrls,
  parent: string,
  report: (line: string) => void,
): Promise<StartDatabase> {
  if (given.DATABASE_URL !== undefined) {
    await migrateAndReport(given.DATABASE_URL, report).catch((error: unknown) => {
      throw new ConfigError(`KEYWARD_DATABASE_URL names a database that cannot be used. ${explainStart(error)}`, {
        cause: error,
      })
    })
    const validatorUrl = given.VALIDATOR_DATABASE_URL ?? given.DATABASE_URL
    return {
      url: given.DATABASE_URL,
      managementUrl: given.DATABASE_URL,
      validatorUrl,
      stop: () => Promise.resolve(),
    }
  }
  const dataFolder = join(parent, FOLDER, 'postgres')
  let port: { port: number } | undefined
  const start = (): Promise<RunningPostgres> => startPostgres({ dataFolder, ...port }).catch(explainVersion)
  const supervised = await supervise('Postgres', start, report)
  const postgres = supervised.current()
  port = { port: postgres.port }
  try {
    const url = withDatabase(postgres.url)
    await createDatabase(postgres.url)
    await migrateAndReport(url, report)
    const { managementUrl, validatorUrl } = await ensureServiceLogins(url, LOGIN_PREFIX)
    return {
      url,
      managementUrl,
      validatorUrl: given.VALIDATOR_DATABASE_URL ?? validatorUrl,
      stop: supervised.stop,
    }
  } catch (error) {
    await supervised.stop()
    throw error
  }
}

/** Throws the error again. If another major version of Postgres wrote the data folder, adds advice. */
function explainVersion(error: unknown): never {
  if (!(error instanceof Error && error.message.includes('incompatible with server'))) throw error
  const advice = `Remove the folder ${FOLDER} to start over, or use the version of Keyward that created it`
  throw new ConfigError(`${error.message} ${advice}`, { cause: error })
}

async function migrateAndReport(url: string, report: (line: string) => void): Promise<void> {
  const { warnings } = await migrate(url)
  for (const warning of warnings) report(warning)
}

function withDatabase(url: string): string {
  const changed = new URL(url)
  changed.pathname = `/${DATABASE}`
  return changed.href
}

async function createDatabase(superuserUrl: string): Promise<void> {
  const pool = createPool(superuserUrl, { name: 'keyward start', max: 1 })
  try {
    const { rowCount } = await pool.query('select from pg_database where datname = $1', [DATABASE])
    if (rowCount === 0) await pool.query(`create database ${DATABASE}`)
  } finally {
    await pool.end()
  }
}
