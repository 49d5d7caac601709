/**
 * Everything that uses kysely. Validators do not import this file: they start sooner without kysely, and the garbage collector
 * has 3 MB less to traverse.
 */

import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'

import type { Database } from './schema.ts'

export { type ActivityEntry, type IssuedFile, recordActivity, recordFileIssued } from './usage/activity.ts'

/** Returns kysely over the pool: names are camel case, keys inside JSON values stay unchanged. */
export function createDatabase(pool: pg.Pool): Kysely<Database> {
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
}
