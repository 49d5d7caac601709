// Which migrations this version knows, and whether a database has them.

import { readdir } from 'node:fs/promises'

import type pg from 'pg'

const FOLDER = new URL('../migrations/', import.meta.url)
const SUFFIX = '.sql'

/** In the order in which they are to be applied. */
export async function listMigrations(): Promise<{ name: string; file: URL }[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith(SUFFIX)).toSorted()
  return files.map((file) => ({ name: file.slice(0, -SUFFIX.length), file: new URL(file, FOLDER) }))
}

/** The database lacks what this version needs. The message is a sentence for operators. */
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
 * Throws NotMigrated when a migration that this version knows has not been applied. What a newer version has applied beyond
 * is no matter: an older version of the services runs on a newer schema. A user who may not look is not stopped.
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
