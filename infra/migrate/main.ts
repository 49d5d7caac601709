/**
 * `npm run migrate`: brings the database that DATABASE_URL names to the schema of this version, and says what it did.
 * With VALIDATOR_LOGIN it also makes the login that validators use, and with VALIDATOR_PASSWORD sets its password.
 */
import { migrate } from '@keyward/database/migrate'
import { failStart, postgresUrl, readConfig, secret, text } from '@keyward/process'
import { z } from 'zod'

import { ensureValidatorLogin } from '../shared/validator-login.ts'

const fields = z.object({
  DATABASE_URL: postgresUrl(),
  VALIDATOR_LOGIN: text('the name of a role').optional(),
  VALIDATOR_PASSWORD: secret(8).optional(),
})
const schema = fields.refine((env) => env.VALIDATOR_PASSWORD === undefined || env.VALIDATOR_LOGIN !== undefined, {
  path: ['VALIDATOR_LOGIN'],
  message: 'the name of the role whose password VALIDATOR_PASSWORD is',
})

async function main(): Promise<void> {
  const config = readConfig(schema)
  const { applied, warnings } = await migrate(config.DATABASE_URL)
  for (const warning of warnings) process.stderr.write(`${warning}\n`)
  process.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied ${applied.join(', ')}.\n`)
  const { VALIDATOR_LOGIN: login, VALIDATOR_PASSWORD: password } = config
  if (login === undefined) return
  const isNew = await ensureValidatorLogin(config.DATABASE_URL, login, password)
  process.stdout.write(`${describeLogin(login, isNew, password !== undefined)}\n`)
}

function describeLogin(login: string, isNew: boolean, hasPassword: boolean): string {
  if (hasPassword) return `The login ${login} is ${isNew ? 'made' : 'there'}, with the password of VALIDATOR_PASSWORD.`
  return isNew
    ? `The login ${login} is made, without a password: set VALIDATOR_PASSWORD unless Postgres lets it in by certificate or peer.`
    : `The login ${login} is there; its password is what it was.`
}

main().catch(failStart)
