/**
 * Compares the declared columns with the triggers that write the change log, and with the columns that a validator may
 * read.
 */

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { ENTITIES } from '../../src/feed/entities.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

interface Trigger {
  readonly name: string
  readonly letter: string
  readonly columns: string[]
  readonly rows: string
}

/** Returns the triggers of a table that write the change log, with the columns that their function compares. */
async function triggersOf(table: string): Promise<Trigger[]> {
  const { rows } = await database.pool.query<{ name: string; source: string }>(
    `select tgname as name, prosrc as source from pg_trigger join pg_proc on pg_proc.oid = tgfoid
     where tgrelid = $1::regclass and proname = 'log_changes_of_' || $1 order by tgname`,
    [table],
  )
  return rows.map(({ name, source }) => {
    const [, letter = ''] = /select '(\w)'::"char", id, \w+ from new_rows/.exec(source) ?? []
    const [, columns = '', which = ''] = /\(select (.+) from old_rows where (.+) except select/.exec(source) ?? []
    return { name, letter, columns: columns.split(', ').toSorted(), rows: which }
  })
}

test.each(ENTITIES)('the triggers on $table log the columns that are declared', async (entity) => {
  const { table, letter, where: rows } = entity
  const columns = [...new Set(entity.columns.flatMap(({ dependsOn }) => dependsOn))].toSorted()
  const names = ['deleted', 'inserted', 'updated'].map((operation) => `${table}_${operation}`)
  expect(await triggersOf(table)).toEqual(names.map((name) => ({ name, letter, columns, rows })))
})

test('declares every table whose changes are logged, except machines', async () => {
  const { rows } = await database.pool.query<{ name: string }>(
    `select distinct tgrelid::regclass::text as name from pg_trigger join pg_proc on pg_proc.oid = tgfoid
     where proname like 'log\\_changes\\_of\\_%'`,
  )
  expect(rows.map(({ name }) => name).toSorted()).toEqual(ENTITIES.map(({ table }) => table).toSorted())
})

test.each(ENTITIES)('a validator may read the declared columns of $table', async ({ columns, from, where }) => {
  const list = columns.map(({ sql }) => sql).join(', ')
  const client = await database.pool.connect()
  await client.query('begin; set local role keyward_validator')
  await expect(client.query(`select ${list} from ${from} where ${where}`)).resolves.toBeDefined()
  await client.query('rollback')
  client.release()
})
