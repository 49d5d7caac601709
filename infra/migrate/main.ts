/** `npm run migrate`: prints what it did, or why it failed. */

import { failStart } from '@keyward/process'

import { runMigrate } from './command.ts'

runMigrate(
  process.env,
  (line) => process.stdout.write(`${line}\n`),
  (line) => process.stderr.write(`${line}\n`),
).catch(failStart)
