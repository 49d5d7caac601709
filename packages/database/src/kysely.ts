/**
 * Exports the functions that use kysely. Validators do not import this file, because without kysely they start faster and their garbage
 * collector traverses 3 MB less.
 */

import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'

import type { Database } from './schema.ts'

export { type ActivityEntry, type IssuedFile, recordActivity, recordFilesIssued } from './usage/activity.ts'

/** Returns a kysely instance over the pool. It converts names to camel case, except keys inside JSON values. */
export function createDatabase(pool: pg.Pool): Kysely<Database> {
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
}
