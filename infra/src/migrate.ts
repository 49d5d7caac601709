/** `npm run migrate`: brings the database that DATABASE_URL names to the schema of this version, and says what it did. */
import { migrate } from '@keyward/database'
import { failStart, postgresUrl, readConfig } from '@keyward/process'
import { z } from 'zod'

async function main(): Promise<void> {
  const config = readConfig(z.object({ DATABASE_URL: postgresUrl() }))
  const { applied, warnings } = await migrate(config.DATABASE_URL)
  for (const warning of warnings) process.stderr.write(`${warning}\n`)
  process.stdout.write(applied.length === 0 ? 'Nothing to do.\n' : `Applied ${applied.join(', ')}.\n`)
}

main().catch(failStart)
