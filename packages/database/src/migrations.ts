/** Lists the migrations of this version, and checks whether a database contains them. */

import { readdir } from 'node:fs/promises'

import type pg from 'pg'

const FOLDER = new URL('../migrations/', import.meta.url)
const SUFFIX = '.sql'

/** Returns the migrations in the order in which they apply. */
export async function listMigrations(): Promise<{ name: string; file: URL }[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith(SUFFIX)).toSorted()
  return files.map((file) => ({ name: file.slice(0, -SUFFIX.length), file: new URL(file, FOLDER) }))
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
    `select has_table_privilege(t, 'select') as readable from to_regclass('kysely_migration') t where t is not null`,
  )
  if (tables[0]?.readable === false) return
  const { rows } =
    tables.length === 0 ? { rows: [] } : await client.query<{ name: string }>('select name from kysely_migration')
  const applied = new Set(rows.map(({ name }) => name))
  const missing = known.filter((name) => !applied.has(name))
  if (missing.length > 0) throw new NotMigrated(missing)
}
