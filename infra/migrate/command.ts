/**
 * Implements `npm run migrate`: migrates the database that DATABASE_URL names to the schema of this version.
 * With ADMIN_DATABASE_URL it first creates the owner of the tables, its database and the group roles. With
 * VALIDATOR_LOGIN and MANAGEMENT_LOGIN it also creates the login roles of the services.
 */

import { migrate } from '@keyward/database/migrate'
import { postgresUrl, readConfig, secret, text } from '@keyward/process'
import { z } from 'zod'

import { ensureLogin, type Login } from '../shared/logins.ts'
import { prepareDatabase } from './administer.ts'

const LOGIN_TAKES = 'the name of a role'
const fieldsSchema = z.object({
  DATABASE_URL: postgresUrl(),
  ADMIN_DATABASE_URL: postgresUrl().optional(),
  VALIDATOR_LOGIN: text(LOGIN_TAKES).optional(),
  VALIDATOR_PASSWORD: secret(8).optional(),
  MANAGEMENT_LOGIN: text(LOGIN_TAKES).optional(),
  MANAGEMENT_PASSWORD: secret(8).optional(),
})

const SERVICES = ['VALIDATOR', 'MANAGEMENT'] as const
const configSchema = fieldsSchema.superRefine((env, context) => {
  for (const service of SERVICES)
    if (env[`${service}_PASSWORD`] !== undefined && env[`${service}_LOGIN`] === undefined)
      context.addIssue({
        code: 'custom',
        path: [`${service}_LOGIN`],
        message: `the name of the role that ${service}_PASSWORD belongs to`,
      })
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
    const login: Login = { name, group, password: config[`${service}_PASSWORD`] }
    report(describeLogin(login, await ensureLogin(adminUrl ?? ownerUrl, login), `${service}_PASSWORD`))
  }
}

function describeLogin({ name, password }: Login, isNew: boolean, variable: string): string {
  if (isNew && password !== undefined) return `Created role ${name} with the password from ${variable}.`
  if (isNew)
    return `Created role ${name} without a password. Set ${variable} unless Postgres authenticates it by certificate or peer.`
  return password === undefined
    ? `Role ${name} already exists; its password was not changed.`
    : `Role ${name} already exists; its password was set to ${variable}.`
}
