/**
 * Creates a database for each test file as a clone of one migrated template. The global setup of the test run starts the
 * server and puts its address into the environment.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

/** The environment variables that contain the superuser's connection string and the name of the template database. */
export const SERVER_VARIABLE = 'KEYWARD_TEST_SERVER'
export const TEMPLATE_VARIABLE = 'KEYWARD_TEST_TEMPLATE'

/** The login of validators in tests, a member of the restricted role. */
export const VALIDATOR_LOGIN = { user: 'keyward_test_validator', password: 'keyward-test' }
/** The login of the management service in tests. */
export const MANAGEMENT_LOGIN = { user: 'keyward_test_management', password: 'keyward-test' }

export interface TestDatabase {
  /** The connection string of the owner of the database. */
  readonly url: string
  /** The connection string of a validator, with the privileges of the restricted role. */
  readonly validatorUrl: string
  /** The connection string of the management service, with the privileges of its role. */
  readonly managementUrl: string
  /** A pool of connections with the login of the owner. */
  readonly pool: pg.Pool
  /** Ends the pool and drops the database. Throws when another connection of the test is still open after `limitMs`. */
  readonly drop: (limitMs?: number) => Promise<void>
}

export async function createTestDatabase(): Promise<TestDatabase> {
  const server = process.env[SERVER_VARIABLE]
  const template = process.env[TEMPLATE_VARIABLE]
  if (server === undefined || template === undefined)
    throw new Error(`${SERVER_VARIABLE} is not set. Run the tests with "npm test" or "vitest run" at the root.`)
  const name = `keyward_test_${process.pid}_${randomBytes(4).toString('hex')}`
  // Copying files is several times faster than the default, which writes a copy of the template to the write-ahead log.
  await onServer(server, (client) => client.query(`create database ${name} template ${template} strategy file_copy`))
  const url = withDatabase(server, name)
  const pool = new pg.Pool({ connectionString: url, max: 20, application_name: 'test' })
  pool.on('error', () => undefined) // tests break connections intentionally
  const drop = async (limitMs = 5_000): Promise<void> => {
    await pool.end()
    await onServer(server, async (client) => {
      const leaked = await connectionsLeft(client, name, limitMs)
      await client.query(`drop database ${name} with (force)`)
      if (leaked.length > 0) throw new Error(`Connections were left open: ${leaked.join('; ')}`)
    })
  }
  return {
    url,
    validatorUrl: withLogin(url, VALIDATOR_LOGIN),
    managementUrl: withLogin(url, MANAGEMENT_LOGIN),
    pool,
    drop,
  }
}

/** Runs `work` with a connection to the server at `url`. */
export async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Returns the connections to the database that are still open after at most `limitMs`. The server detects a closed connection with a delay.
 */
async function connectionsLeft(client: pg.Client, name: string, limitMs: number): Promise<string[]> {
  const untilMs = performance.now() + limitMs
  for (;;) {
    const { rows } = await client.query<{ application: string; query: string }>(
      `select application_name as application, query from pg_stat_activity
       where datname = $1 and backend_type = 'client backend'`,
      [name],
    )
    if (rows.length === 0 || performance.now() >= untilMs)
      return rows.map((row) => `${row.application} after "${row.query}"`)
    await sleep(50)
  }
}

export function withDatabase(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}

function withLogin(url: string, { user, password }: { user: string; password: string }): string {
  const changed = new URL(url)
  changed.username = user
  changed.password = password
  return changed.href
}
