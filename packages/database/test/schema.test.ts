/** Compares the schema that the migrations create with schema.sql, and with the functions of the previous version. */

import { readFile, rm } from 'node:fs/promises'
import { basename } from 'node:path'

import { copyPreviousSchema, createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { migrate } from '../src/migrate.ts'
import { listFunctions } from '../src/migrations.ts'
import { dumpSchema } from './support/dump-schema.ts'

/** A function file with this comment may be removed in the next version. */
const RETIRED = '-- Only services of the previous version call it.'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  // A copy of a database has the default privileges again. Each run of the migrations revokes them.
  await migrate(database.url)
})
afterAll(() => database.drop())

test('the migrations create the schema in schema.sql', async () => {
  await expect(await dumpSchema(database.pool)).toMatchFileSnapshot('../schema.sql')
})

test('the body of every function fits the tables, and a file has the name of its function', async () => {
  for (const file of await listFunctions()) {
    const text = await readFile(file, 'utf8')
    const [, defined] = /^create or replace function (\w+)\(/m.exec(text) ?? []
    expect(`${defined}.sql`).toBe(basename(file.pathname))
    // The migration does not check bodies, because some tables do not exist yet when it creates the functions.
    await database.pool.query(text)
  }
})

/** Selects the functions that a service may execute, with the types of their arguments and results. */
const CALLABLE = (schema: string): string => `
  select replace(format('%s %s', p.oid::regprocedure, pg_get_function_result(p.oid)), '${schema}.', '') as name
  from pg_proc p where pronamespace = '${schema}'::regnamespace and prorettype <> 'trigger'::regtype order by 1`

test('every function of the previous version exists with the same arguments and result', async (context) => {
  const previous = copyPreviousSchema()
  if (previous === undefined) {
    context.skip('git has no previous version')
    return
  }
  const client = await database.pool.connect()
  await client.query('create schema previous; set search_path = previous, public; set check_function_bodies = off')
  for (const file of await listFunctions(previous)) {
    const text = await readFile(file, 'utf8')
    if (!text.includes(RETIRED)) await client.query(text)
  }
  const namesIn = async (schema: string): Promise<string[]> =>
    (await client.query<{ name: string }>(CALLABLE(schema))).rows.map(({ name }) => name)
  const existing = new Set(await namesIn('public'))
  const former = await namesIn('previous')
  client.release(true)
  await rm(previous, { recursive: true })
  expect(former.length).toBeGreaterThan(20)
  expect(former.filter((name) => !existing.has(name))).toEqual([])
})
