/** `npm run migrate`: prints the changes or the reason of a failure. */

import { failStart } from '@keyward/process'

import { runMigrate } from './command.ts'

runMigrate(
  process.env,
  (line) => process.stdout.write(`${line}\n`),
  (line) => process.stderr.write(`${line}\n`),
).catch(failStart)
