/** Builds queries with kysely. */

import { CamelCasePlugin, Kysely, PostgresDialect, type PostgresPool } from 'kysely'

import type { Database } from './schema.ts'

/** Converts names to camel case, except keys inside JSON values. All instances share the plugin, which remembers converted names. */
const PLUGINS = [new CamelCasePlugin({ maintainNestedObjectKeys: true })]

/** Returns a kysely instance over the pool. */
export function createDatabase(pool: PostgresPool): Kysely<Database> {
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool }), plugins: PLUGINS })
}
