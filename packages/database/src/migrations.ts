/** Lists the SQL files of the schema, and checks whether a database contains the migrations of this version. */

import { readdir } from 'node:fs/promises'

import type pg from 'pg'

/** The folder that contains migrations/, functions/ and grants.sql. */
export const SCHEMA_FOLDER = new URL('../', import.meta.url)
const SUFFIX = '.sql'

export interface Migration {
  readonly name: string
  /** The files in the order in which they apply. */
  readonly files: readonly URL[]
}

/** Returns the migrations in the order in which they apply. A migration is a file or a folder of files. */
export async function listMigrations(schema = SCHEMA_FOLDER): Promise<Migration[]> {
  const folder = new URL('migrations/', schema)
  const entries = (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return Promise.all(
    entries.map(async (entry) =>
      entry.isDirectory()
        ? { name: entry.name, files: await listFiles(new URL(`${entry.name}/`, folder)) }
        : { name: entry.name.slice(0, -SUFFIX.length), files: [new URL(entry.name, folder)] },
    ),
  )
}

/** Returns the files that define the functions, one for each function. */
export function listFunctions(schema = SCHEMA_FOLDER): Promise<URL[]> {
  return listFiles(new URL('functions/', schema))
}

async function listFiles(folder: URL): Promise<URL[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX)).toSorted()
  return names.map((name) => new URL(name, folder))
}

/** Reports that a database lacks migrations of this version, with a message for operators. */
export class NotMigrated extends Error {
  override readonly name = 'NotMigrated'

  constructor(missing: readonly string[]) {
    const [first = ''] = missing
    const what =
      missing.length === 1 ? `${first} is missing` : `${missing.length} migrations are missing from ${first} on`
    super(`The database has not been migrated yet; ${what}. Run "npm run migrate".`)
  }
}

/**
 * Throws NotMigrated if a migration of this version has not been applied. Migrations of newer versions are allowed, because an older
 * version of the services can use a newer schema. Does nothing for a user without the privilege to read the list of migrations.
 */
export async function requireMigrated(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
  const known = (await listMigrations()).map(({ name }) => name)
  const { rows: tables } = await client.query<{ readable: boolean }>(
    `select has_table_privilege(t, 'select') as readable from to_regclass('migrations') t where t is not null`,
  )
  if (tables[0]?.readable === false) return
  const { rows } =
    tables.length === 0 ? { rows: [] } : await client.query<{ name: string }>('select name from migrations')
  const applied = new Set(rows.map(({ name }) => name))
  const missing = known.filter((name) => !applied.has(name))
  if (missing.length > 0) throw new NotMigrated(missing)
}
