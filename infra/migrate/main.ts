/**
 * `npm run migrate`: migrates the database that DATABASE_URL names to the schema of this version and prints what it did.
 * With VALIDATOR_LOGIN it also creates the role that validators log in as; VALIDATOR_PASSWORD sets that role's password.
 */

import { migrate } from '@keyward/database/migrate'
import { failStart, postgresUrl, readConfig, secret, text } from '@keyward/process'
import { z } from 'zod'

import { ensureValidatorLogin } from '../shared/validator-login.ts'

const fieldsSchema = z.object({
  DATABASE_URL: postgresUrl(),
  VALIDATOR_LOGIN: text('the name of a role').optional(),
  VALIDATOR_PASSWORD: secret(8).optional(),
})
const configSchema = fieldsSchema.refine(
  (env) => env.VALIDATOR_PASSWORD === undefined || env.VALIDATOR_LOGIN !== undefined,
  {
    path: ['VALIDATOR_LOGIN'],
    message: 'the name of the role that VALIDATOR_PASSWORD belongs to',
  },
)

async function main(): Promise<void> {
  const config = readConfig(configSchema)
  const { applied, warnings } = await migrate(config.DATABASE_URL)
  for (const warning of warnings) process.stderr.write(`${warning}\n`)
  process.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied ${applied.join(', ')}.\n`)
  const { VALIDATOR_LOGIN: login, VALIDATOR_PASSWORD: password } = config
  if (login === undefined) return
  const isNew = await ensureValidatorLogin(config.DATABASE_URL, login, password)
  process.stdout.write(`${describeLogin(login, isNew, password !== undefined)}\n`)
}

function describeLogin(login: string, isNew: boolean, hasPassword: boolean): string {
  if (isNew && hasPassword) return `Created role ${login} with the password from VALIDATOR_PASSWORD.`
  if (isNew)
    return `Created role ${login} without a password. Set VALIDATOR_PASSWORD unless Postgres authenticates it by certificate or peer.`
  return hasPassword
    ? `Role ${login} already exists; its password was set to VALIDATOR_PASSWORD.`
    : `Role ${login} already exists; its password was not changed.`
}

main().catch(failStart)
