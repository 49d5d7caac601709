import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import * as errors from '../src/errors.ts'
import { createPool } from '../src/index.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await database.pool.query('create table parents (id integer primary key)')
  await database.pool.query('create table children (id integer constraint children_parent references parents)')
  await database.pool.query('insert into parents values (1)')
})
afterAll(() => database.drop())

const thrownBy = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error('Nothing was thrown')
}

/** Returns the names of the classifiers that return true for an error. */
const classesOf = (error: unknown): string[] =>
  Object.entries(errors).flatMap(([name, is]) => (name.startsWith('is') && is(error) === true ? [name] : []))

test.each<[string, string, string[]]>([
  ['insert into parents values (1)', '23505', ['isDataRejected', 'isDuplicate']],
  ['insert into children values (2)', '23503', ['isDataRejected', 'isRetryable']],
  [`select 'x'::integer`, '22P02', ['isDataRejected']],
  ['select no_such_function()', '42883', ['isFunctionMissing', 'isSchemaMissing']],
  ['select from no_such_table', '42P01', ['isSchemaMissing']],
  ['set role keyward_validator; select from members', '42501', ['isPermissionDenied', 'isSchemaMissing']],
  [`do $$ begin raise 'x' using errcode = '40001'; end $$`, '40001', ['isRetryable']],
  [`do $$ begin raise 'x' using errcode = '55P03'; end $$`, '55P03', ['isLockTimeout', 'isServerUnavailable']],
  [`set statement_timeout = 1; select pg_sleep(1)`, '57014', ['isServerUnavailable', 'isTooSlow']],
])('classifies the error of %s', async (statement, state, classes) => {
  const client = await database.pool.connect()
  const error = await thrownBy(client.query(statement))
  client.release(true)
  expect(errors.sqlState(error)).toBe(state)
  expect(classesOf(error).toSorted()).toEqual(classes)
})

test('returns the constraint that a statement violated', async () => {
  const unique = await thrownBy(database.pool.query('insert into parents values (1)'))
  const reference = await thrownBy(database.pool.query('insert into children values (2)'))
  expect([unique, reference].map(errors.violatedConstraint)).toEqual(['parents_pkey', 'children_parent'])
  expect(errors.violatedConstraint(await thrownBy(database.pool.query(`select 'x'::integer`)))).toBe('')
})

test('recognizes failed connections by the error code of the system and by the message of the driver', async () => {
  const pool = createPool('postgres://127.0.0.1:1/x', { name: 'test' })
  const refused = await thrownBy(pool.query('select'))
  await pool.end()
  const client = await database.pool.connect()
  client.on('error', () => undefined)
  const cut = await thrownBy(client.query('select pg_terminate_backend(pg_backend_pid())'))
  const afterwards = await thrownBy(client.query('select'))
  client.release(true)
  expect(classesOf(refused)).toEqual(['isConnectionFailure'])
  expect(errors.isServerUnavailable(cut) || errors.isConnectionFailure(cut)).toBe(true)
  expect(classesOf(afterwards)).toEqual(['isConnectionFailure'])
})

test.each([
  Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }),
  Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
])('finds no SQLSTATE in $message', (error) => {
  expect(errors.sqlState(error)).toBeNull()
  expect(classesOf(error)).toEqual(['isConnectionFailure'])
})

test('assigns no class to an error of the program, whatever its message', () => {
  expect(classesOf(new TypeError("Cannot read properties of undefined (reading 'connection')"))).toEqual([])
  expect(classesOf(new Error('The connection has no timeout'))).toEqual([])
  expect(classesOf('connection')).toEqual([])
})
