/**
 * The exports that use kysely. Validators do not import this file. Without kysely they start faster, and their garbage
 * collector traverses 3 MB less.
 */

import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'

import type { Database } from './schema.ts'

export { type ActivityEntry, type IssuedFile, recordActivity, recordFileIssued } from './usage/activity.ts'

/** Returns kysely over the pool. Names are in camel case, but keys inside JSON values stay unchanged. */
export function createDatabase(pool: pg.Pool): Kysely<Database> {
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
}
