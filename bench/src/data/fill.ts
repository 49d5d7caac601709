/**
 * Fills a database with a shape's rows in one transaction. The transaction disables triggers and foreign keys, because the rows are
 * consistent by construction, and logging a row would cost more than inserting it. Running validators do not receive the rows, and load
 * them at their next start.
 */

import { isDuplicate, isPermissionDenied } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import pg from 'pg'

import type { Shape } from './population.ts'
import { copyTables } from './tables.ts'

export interface LoadReport {
  seconds: number
  rows: { licenses: number; machines: number; rules: number }
}

/** Migrates the database and adds the shape's rows. Throws if the login is not a superuser or the rows exist already. */
export async function fillDatabase(databaseUrl: string, shape: Shape): Promise<LoadReport> {
  await migrate(databaseUrl)
  const start = performance.now()
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'keyward-bench-generate' })
  await client.connect()
  try {
    await fill(client, shape)
  } catch (error) {
    throw explain(error)
  } finally {
    await client.end()
  }
  const { licenses, rules } = shape
  const rows = { licenses, machines: licenses * shape.machinesPerLicense, rules: rules + shape.organizations * 2 }
  return { seconds: (performance.now() - start) / 1000, rows }
}

async function fill(client: pg.Client, shape: Shape): Promise<void> {
  await client.query('begin')
  await client.query(`set local session_replication_role = replica`)
  await client.query(`set local synchronous_commit = off`)
  await client.query(`set local maintenance_work_mem = '1GB'`)
  const indexes = await dropIndexes(client)
  await copyTables(client, shape)
  for (const definition of indexes) await client.query(definition)
  for (const statement of DERIVED) await client.query(statement)
  await client.query('commit')
  await client.query('vacuum (analyze) licenses, license_slots, machines, access_rules, customers, products')
}

/** The statements that write the rows that triggers would have written. */
const DERIVED = [
  `insert into access_rule_counters (rule_id, organization_id)
   select id, organization_id from access_rules on conflict do nothing`,
  'select recount_usage()',
]

const FILLED_TABLES = ['customers', 'licenses', 'license_slots', 'machines', 'access_rules']

interface Definition {
  drop: string
  create: string
}

/**
 * Drops the indexes of an empty database and returns the statements that create them again. Building an index over
 * existing rows is several times faster than growing it row by row. A database with licenses keeps its indexes.
 */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  const { rows: filled } = await client.query('select from licenses limit 1')
  if (filled.length > 0) return []
  const { rows } = await client.query<Definition>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
            format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as create
       from pg_constraint
      where conrelid = any($1::regclass[]) and contype = 'u'
        and not exists (select from pg_constraint f where f.contype = 'f' and f.conindid = pg_constraint.conindid)
     union all
     select format('drop index %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
       from pg_index i
      where i.indrelid = any($1::regclass[])
        and not exists (select from pg_constraint c where c.conindid = i.indexrelid)`,
    [FILLED_TABLES],
  )
  for (const { drop } of rows) await client.query(drop)
  return rows.map(({ create }) => create)
}

function explain(error: unknown): Error {
  if (isDuplicate(error))
    return new Error('the database already contains the rows of this seed; choose another --seed', { cause: error })
  if (isPermissionDenied(error))
    return new Error('the login must be a superuser, because the generator disables triggers', { cause: error })
  return error instanceof Error ? error : new Error(String(error))
}
