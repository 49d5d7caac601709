/**
 * `npm run migrate`: brings the database that DATABASE_URL names to the schema of this version, and says what it did.
 * With VALIDATOR_LOGIN and VALIDATOR_PASSWORD it also makes the login that validators use.
 */
import { migrate } from '@keyward/database/migrate'
import { failStart, postgresUrl, readConfig, secret, text } from '@keyward/process'
import { z } from 'zod'

import { ensureValidatorLogin } from './validator-login.ts'

const schema = z.object({
  DATABASE_URL: postgresUrl(),
  VALIDATOR_LOGIN: text('the name of a role').optional(),
  VALIDATOR_PASSWORD: secret(8).optional(),
})

async function main(): Promise<void> {
  const config = readConfig(schema)
  const { applied, warnings } = await migrate(config.DATABASE_URL)
  for (const warning of warnings) process.stderr.write(`${warning}\n`)
  process.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied ${applied.join(', ')}.\n`)
  if (config.VALIDATOR_LOGIN !== undefined)
    await ensureValidatorLogin(config.DATABASE_URL, config.VALIDATOR_LOGIN, config.VALIDATOR_PASSWORD)
}

main().catch(failStart)
