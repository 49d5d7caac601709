/** Tests transactions that send statements before the responses to earlier ones have arrived. */

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

import { createPool } from '../src/index.ts'
import { discardLast, executeLast, runPipelined, together } from '../src/kysely.ts'

let database: TestDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await createTestDatabase()
  await database.pool.query('create table noted (id serial primary key, text text unique)')
  pool = createPool(database.url, { name: 'pipelined', max: 1, pipelines: true })
})
afterEach(() => database.pool.query('truncate noted'))
afterAll(async () => {
  await pool.end()
  await database.drop()
})

const note = (text: string) => sql<{ id: number }>`insert into noted (text) values (${text}) returning id`
const noted = async (): Promise<string[]> => {
  const { rows } = await database.pool.query<{ text: string }>('select text from noted order by id')
  return rows.map(({ text }) => text)
}

test('executes statements in the order of their calls, and those of executeLast at the end', async () => {
  const count = await runPipelined(pool, async (db) => {
    await executeLast(db, note('last'))
    const [, , counted] = await together(
      note('a').execute(db),
      note('b').execute(db),
      sql<{ count: number }>`select count(*)::integer as count from noted`.execute(db),
    )
    expect(await noted()).toEqual([])
    return counted.rows[0]?.count
  })
  expect(count).toBe(2)
  expect(await noted()).toEqual(['a', 'b', 'last'])
})

test('rolls back everything and throws the first error of a failed statement', async () => {
  const work = runPipelined(pool, (db) =>
    together(note('a').execute(db), note('a').execute(db), sql`select 1 / 0`.execute(db)),
  )
  await expect(work).rejects.toThrow('duplicate key')
  expect(await noted()).toEqual([])
})

test('rolls back everything when a statement of executeLast fails', async () => {
  const work = runPipelined(pool, async (db) => {
    await note('a').execute(db)
    await executeLast(db, note('b'))
    await executeLast(db, note('a'))
    await executeLast(db, note('c'))
  })
  await expect(work).rejects.toThrow('duplicate key')
  expect(await noted()).toEqual([])
})

test('does not report a commit after a failed statement whose error was caught', async () => {
  const work = runPipelined(pool, async (db) => {
    await note('a').execute(db)
    await sql`select 1 / 0`.execute(db).catch(() => undefined)
  })
  await expect(work).rejects.toThrow('The transaction was rolled back')
  expect(await noted()).toEqual([])
})

test('does not execute discarded statements', async () => {
  await runPipelined(pool, async (db) => {
    await executeLast(db, note('discarded'))
    discardLast(db)
    await executeLast(db, note('kept'))
  })
  expect(await noted()).toEqual(['kept'])
})

test('executes nothing without a transaction', async () => {
  // oxlint-disable-next-line typescript/unbound-method -- called with its receiver below
  const original: (...args: unknown[]) => unknown = pg.Client.prototype.query
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function query(this: pg.Client, ...args: unknown[]) {
    const [first] = args
    const text = typeof first === 'object' && first !== null && 'text' in first ? first.text : first
    if (text === 'begin') return Promise.reject(new Error('no transaction'))
    return original.apply(this, args)
  })
  const failing = createPool(database.url, { name: 'failing', max: 1, pipelines: true })
  const work = runPipelined(failing, async (db) => {
    await sql`select 1`.execute(db)
    await note('a').execute(db)
  })
  await expect(work).rejects.toThrow('no transaction')
  vi.restoreAllMocks()
  await failing.end()
  expect(await noted()).toEqual([])
})
