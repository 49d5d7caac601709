/**
 * Implements `npm run migrate`: migrates the database that KEYWARD_DATABASE_URL names to the schema of this version.
 * With KEYWARD_ADMIN_DATABASE_URL it first creates the owner of the tables, its database and the group roles. With
 * KEYWARD_VALIDATOR_LOGIN and KEYWARD_MANAGEMENT_LOGIN it also creates the login roles of the services. With the argument
 * `--before-service` it waits for Postgres, and accepts the schema of a newer version, so that it can run before every
 * start of a service.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { isConnectionFailure, isServerUnavailable } from '@keyward/database'
import { migrate, NewerSchemaError } from '@keyward/database/migrate'
import { describeError, fullName, integer, postgresUrl, readConfig, secret, text } from '@keyward/runtime'
import { z } from 'zod'

import { ensureLogin, type Login } from '../shared/logins.ts'
import { prepareDatabase } from './administer.ts'

const LOGIN_TAKES = 'the name of a role'
export const fieldsSchema = z.object({
  DATABASE_URL: postgresUrl(),
  ADMIN_DATABASE_URL: postgresUrl().optional(),
  VALIDATOR_LOGIN: text(LOGIN_TAKES).optional(),
  VALIDATOR_PASSWORD: secret(8).optional(),
  VALIDATOR_CONNECTIONS: integer(1, 10_000).optional(),
  MANAGEMENT_LOGIN: text(LOGIN_TAKES).optional(),
  MANAGEMENT_PASSWORD: secret(8).optional(),
})

const SERVICES = ['VALIDATOR', 'MANAGEMENT'] as const
const configSchema = fieldsSchema.superRefine((env, context) => {
  for (const service of SERVICES) {
    const [logins, passwords] = [env[`${service}_LOGIN`], env[`${service}_PASSWORD`]]
    const count = logins?.split(',').length ?? 0
    if (count > 1 && passwords !== undefined && passwords.split(',').length !== count)
      context.addIssue({
        code: 'custom',
        path: [`${service}_PASSWORD`],
        message: `a comma-separated list of ${count} passwords, one for each role in ${fullName(`${service}_LOGIN`)}`,
      })
    if (env[`${service}_PASSWORD`] !== undefined && env[`${service}_LOGIN`] === undefined)
      context.addIssue({
        code: 'custom',
        path: [`${service}_LOGIN`],
        message: `the name of the role that ${fullName(`${service}_PASSWORD`)} belongs to`,
      })
  }
})

/** Migrates the database. Passes a line per change to `report` and each warning to `warn`. Throws ConfigError. */
export async function runMigrate(
  env: Record<string, string | undefined>,
  report: (line: string) => void,
  warn: (line: string) => void,
): Promise<void> {
  const config = readConfig(configSchema, env)
  const { DATABASE_URL: ownerUrl, ADMIN_DATABASE_URL: adminUrl } = config
  if (adminUrl !== undefined) for (const line of await prepareDatabase(adminUrl, ownerUrl)) report(line)
  const { applied, warnings } = await migrate(ownerUrl)
  for (const warning of warnings) warn(warning)
  report(applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`)
  for (const service of SERVICES) {
    const name = config[`${service}_LOGIN`]
    if (name === undefined) continue
    const group = service === 'VALIDATOR' ? 'keyward_validator' : 'keyward_management'
    const connections = service === 'VALIDATOR' ? config.VALIDATOR_CONNECTIONS : undefined
    for (const login of listLogins(name, config[`${service}_PASSWORD`], group))
      report(
        describeLogin(
          login,
          await ensureLogin(adminUrl ?? ownerUrl, { ...login, connections }),
          fullName(`${service}_PASSWORD`),
        ),
      )
  }
}

/** Returns the logins that a comma-separated list names. Several logins have as many passwords, in the same order. */
function listLogins(names: string, passwords: string | undefined, group: Login['group']): Login[] {
  const list = names.split(',')
  if (list.length === 1) return [{ name: names, group, password: passwords }]
  const given = passwords?.split(',')
  return list.map((name, i) => ({ name: name.trim(), group, password: given?.[i] }))
}

const RETRY_MS = 1_000

/**
 * Migrates the database, and retries without a time limit while Postgres is not available. If the schema belongs to a newer version,
 * returns without an error, because the services of this version run on that schema.
 */
export async function runMigrateBeforeService(
  env: Record<string, string | undefined>,
  report: (line: string) => void,
  warn: (line: string) => void,
): Promise<void> {
  let warned = ''
  for (;;)
    try {
      return await runMigrate(env, report, warn)
    } catch (error) {
      if (error instanceof NewerSchemaError)
        return report(`The schema belongs to a newer version (${error.migration}). It was not changed.`)
      if (!isTemporary(error)) throw error
      const reason = describeError(error).message
      // A reason that does not change is printed only once, because the wait may be long.
      if (reason !== warned) warn(`Postgres is not available: ${reason}. The migration retries every second.`)
      warned = reason
      await sleep(RETRY_MS)
    }
}

/** Returns whether the error means that Postgres cannot be reached now, or that its host name does not resolve yet. */
function isTemporary(error: unknown): boolean {
  if (isServerUnavailable(error) || isConnectionFailure(error)) return true
  if (!(error instanceof Error)) return false
  return ('code' in error && error.code === 'ENOTFOUND') || (error.cause !== undefined && isTemporary(error.cause))
}

function describeLogin({ name, password }: Login, isNew: boolean, variable: string): string {
  if (isNew && password !== undefined) return `Created role ${name} with the password from ${variable}.`
  if (isNew)
    return `Created role ${name} without a password. Set ${variable} unless Postgres authenticates it by certificate or peer.`
  return password === undefined
    ? `Role ${name} already exists; its password was not changed.`
    : `Role ${name} already exists; its password was set to ${variable}.`
}
