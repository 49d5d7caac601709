import { createTestDatabase, insertOrganization, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createPool } from '../src/index.ts'
import { StatementNames } from '../src/statement-names.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('a pool prepares a parameterized statement once, and continues after a column was added', async () => {
  const pool = createPool(database.url, { name: 'test', max: 1, preparesStatements: true })
  const id = await insertOrganization(database.pool)
  const names = async (): Promise<unknown> =>
    (await pool.query('select id from organizations where id = $1', [id])).rows
  expect([await names(), await names()]).toEqual([[{ id }], [{ id }]])
  await database.pool.query('alter table organizations add column of_a_later_version text')
  expect(await names()).toEqual([{ id }])
  const all = async () => (await pool.query('select * from organizations where id = $1', [id])).rowCount
  expect(await all()).toBe(1)
  await database.pool.query('alter table organizations add column another text')
  expect(await all()).toBe(1)
  const { rows } = await pool.query('select statement from pg_prepared_statements')
  expect(rows).toEqual([{ statement: 'select id from organizations where id = $1' }])
  await pool.end()
})

test('a pool prepares nothing without the option', async () => {
  const pool = createPool(database.url, { name: 'test', max: 1 })
  await pool.query('select $1::integer', [1])
  expect((await pool.query('select from pg_prepared_statements')).rowCount).toBe(0)
  await pool.end()
})

test.each([
  'select "id" from "licenses" where "id" in ($1, $2, $3)',
  'insert into t (a, b) values ($1, $2), ($3, $4)',
  'select * from "licenses" where "id" = $1',
  'select a, l.* from licenses l where id = $1',
  'update "customers" set "name" = $1 returning *',
  `select $1 as ${'x'.repeat(9_000)}`,
])('leaves a statement unnamed whose text or result can vary: %s', (text) => {
  expect(new StatementNames().nameOf(text)).toBeUndefined()
})

test('names a statement with count(*), and at most 250 statements', () => {
  const names = new StatementNames()
  const count = names.nameOf('select count(*) from t where a = $1')
  expect(count).toBe('keyward_0')
  const found = Array.from({ length: 300 }, (_, i) => names.nameOf(`select ${i}, $1`))
  expect(new Set(found).size).toBe(250)
  expect(names.nameOf('select count(*) from t where a = $1')).toBe(count)
})
