/** The declared columns against the database: the triggers that write the change log, and what a validator may read. */

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

/** The triggers of a table that write the change log, with the arguments that they pass to `log_changes`. */
async function triggersOf(table: string): Promise<Trigger[]> {
  const { rows } = await database.pool.query<{ name: string; definition: string }>(
    `select tgname as name, pg_get_triggerdef(oid) as definition from pg_trigger
     where tgrelid = $1::regclass and tgfoid = 'log_changes'::regproc order by tgname`,
    [table],
  )
  return rows.map(({ name, definition }) => {
    const call = /log_changes\('((?:[^']|'')*)', '((?:[^']|'')*)', '((?:[^']|'')*)'\)$/.exec(definition)
    const [letter = '', columns = '', which = ''] = (call ?? []).slice(1).map((text) => text.replaceAll("''", "'"))
    return { name, letter, columns: columns.split(', ').toSorted(), rows: which }
  })
}

test.each(ENTITIES)('the triggers on $table log the columns that are declared', async (entity) => {
  const { table, letter, where: rows } = entity
  const columns = [...new Set(entity.columns.flatMap(({ dependsOn }) => dependsOn))].toSorted()
  const names = ['deleted', 'inserted', 'updated'].map((operation) => `${table}_${operation}`)
  expect(await triggersOf(table)).toEqual(names.map((name) => ({ name, letter, columns, rows })))
})

test('every table whose changes are logged is declared, apart from machines', async () => {
  const { rows } = await database.pool.query<{ name: string }>(
    `select distinct tgrelid::regclass::text as name from pg_trigger where tgfoid = 'log_changes'::regproc`,
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
