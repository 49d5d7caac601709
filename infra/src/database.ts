/**
 * The database of a start: the one that DATABASE_URL names, or an embedded Postgres whose data lies in `.keyward/`.
 * Either way it is migrated before a service sees it, and the validator gets its restricted role where there is one.
 */
import { join } from 'node:path'

import { createPool, migrate } from '@keyward/database'
import { startPostgres } from '@keyward/embedded-postgres'

import { FOLDER } from './state.ts'
import { keepRunning } from './supervisor.ts'

export interface StartDatabase {
  /** For management and migrations. */
  url: string
  /** For validators. */
  validatorUrl: string
  stop: () => Promise<void>
}

export interface GivenUrls {
  DATABASE_URL?: string | undefined
  VALIDATOR_DATABASE_URL?: string | undefined
}

const DATABASE = 'keyward'
/** A login that is allowed what the group role `keyward_validator` is, and nothing else. */
const VALIDATOR_LOGIN = 'keyward_embedded_validator'

/** `parent` is where `.keyward/` lies. A Postgres that is killed is started again on the same port. */
export async function startDatabase(
  given: GivenUrls,
  parent: string,
  report: (line: string) => void,
): Promise<StartDatabase> {
  if (given.DATABASE_URL !== undefined) {
    await migrateAndReport(given.DATABASE_URL, report)
    const validatorUrl = given.VALIDATOR_DATABASE_URL ?? given.DATABASE_URL
    return { url: given.DATABASE_URL, validatorUrl, stop: () => Promise.resolve() }
  }
  const dataFolder = join(parent, FOLDER, 'postgres')
  let port: { port: number } | undefined
  const kept = await keepRunning('Postgres', () => startPostgres({ dataFolder, ...port }), report)
  const postgres = kept.current()
  port = { port: postgres.port }
  try {
    const url = withDatabase(postgres.url)
    await createDatabase(postgres.url)
    await migrateAndReport(url, report)
    await createValidatorLogin(url)
    const validatorUrl = new URL(url)
    validatorUrl.username = VALIDATOR_LOGIN
    return { url, validatorUrl: given.VALIDATOR_DATABASE_URL ?? validatorUrl.href, stop: kept.stop }
  } catch (error) {
    await kept.stop()
    throw error
  }
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
  await createUnless(
    superuserUrl,
    `select from pg_database where datname = '${DATABASE}'`,
    `create database ${DATABASE}`,
  )
}

async function createValidatorLogin(url: string): Promise<void> {
  const exists = `select from pg_roles where rolname = '${VALIDATOR_LOGIN}'`
  await createUnless(url, exists, `create role ${VALIDATOR_LOGIN} login in role keyward_validator`)
}

async function createUnless(url: string, exists: string, create: string): Promise<void> {
  const pool = createPool(url, { name: 'keyward start', max: 1 })
  try {
    const { rowCount } = await pool.query(exists)
    if (rowCount === 0) await pool.query(create)
  } finally {
    await pool.end()
  }
}
