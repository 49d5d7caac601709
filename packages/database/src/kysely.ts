// What is written with kysely. Apart from the rest, because validators do without: they would start later, and their
// collector would have 3 MB more to look through.

import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'

import type { Database } from './schema.ts'

export { type ActivityEntry, recordActivity } from './usage/activity.ts'

/** Kysely over the pool: names in camel case, keys inside of JSON values left as they are. */
export function createDatabase(pool: pg.Pool): Kysely<Database> {
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
}
