/** Reads every row of every table and view as text. System tables are included, because statistics contain values. */

import type { openPool } from '../../faults/support/postgres.ts'

/** Returns the rows as text, by the name of the relation. Bytes are hexadecimal digits. */
export async function dumpDatabase(pool: ReturnType<typeof openPool>): Promise<Map<string, string>> {
  await pool.query('analyze')
  const relations = await pool.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'm', 'v') and n.nspname in ('public', 'pg_catalog')
       and c.relname not like '%numa' -- places of shared memory, which not every machine can tell
     order by 1`,
  )
  const dump = new Map<string, string>()
  for (const { name } of relations.rows) {
    const { rows } = await pool.query<{ row: string }>(`select whole::text as row from ${name} as whole`)
    dump.set(name, rows.map(({ row }) => row).join('\n'))
  }
  return dump
}
