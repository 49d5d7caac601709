/**
 * `npm run migrate`: migrates the database, and prints the changes or the reason for a failure. With `--before-service`, waits for
 * Postgres.
 */

import { failStart, reportOldNames } from '@keyward/runtime'

import { fieldsSchema, runMigrate, runMigrateBeforeService } from './command.ts'

const run = process.argv.includes('--before-service') ? runMigrateBeforeService : runMigrate

reportOldNames(fieldsSchema)
run(
  process.env,
  (line) => process.stdout.write(`${line}\n`),
  (line) => process.stderr.write(`${line}\n`),
).catch(failStart)
