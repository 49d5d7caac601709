import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { to as copyTo } from 'pg-copy-streams'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type ColumnReader, columnsOf } from '../../src/feed/columns.ts'
import { CopyDecoder, RowDecoder } from '../../src/feed/copy-decoder.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const ID = '01912d68-783e-7a03-8467-5661c1243ad4'
const TIMES = [
  '1970-01-01 00:00:00Z',
  '1999-12-31 23:59:59.999999Z',
  '2000-01-01 00:00:00.000001Z',
  '2026-11-22 07:00:00.123999Z',
  '1600-02-29 12:34:56.7891Z',
  '9999-12-31 23:59:59.999999Z',
  '4713-01-01 00:00:00Z',
]

/** Reads a column of every type, then a nullable column of every type. */
const read = (column: ColumnReader) => ({
  uuid: Buffer.from(column.uuid('a', { sql: `'${ID}'::uuid` })).toString('hex'),
  uuidOrNull: column.uuidOrNull('b', { sql: 'null::uuid' }),
  repeated: column.repeatedUuid('c', { sql: `'${ID}'::uuid` }),
  bytes: Buffer.from(column.bytes('d', { sql: `'\\x00ff0a'::bytea` })).toString('hex'),
  text: column.text('e', { sql: `'é' || i` }),
  integer: column.integer('f', { sql: '-2147483648 + i' }),
  integerOrNull: column.integerOrNull('g', { sql: 'null::integer' }),
  no: column.boolean('h', { sql: 'i < 0' }),
  yes: column.boolean('i', { sql: 'i >= 0' }),
  never: column.timeOrNever('j', { sql: 'null::timestamptz' }),
  empty: column.bytes('m', { sql: `''::bytea` }).length,
})
const columns = columnsOf(read)
const list = columns.map(({ sql }) => sql).join(', ')
const expected = (i: number) => ({
  uuid: ID.replaceAll('-', ''),
  uuidOrNull: null,
  repeated: Uint8Array.from(Buffer.from(ID.replaceAll('-', ''), 'hex')),
  bytes: '00ff0a',
  text: `é${i}`,
  integer: -2_147_483_648 + i,
  integerOrNull: null,
  no: false,
  yes: true,
  never: Infinity,
  empty: 0,
})

async function copied(select: string): Promise<Buffer> {
  const client = await database.pool.connect()
  const chunks: Buffer[] = []
  for await (const chunk of client.query(copyTo(`copy (${select}) to stdout (format binary)`))) chunks.push(chunk)
  client.release()
  return Buffer.concat(chunks)
}

test.each([1, 2, 3, 7, 64, 100_000])('decodes a COPY stream that arrives %i bytes at a time', async (size) => {
  const stream = await copied(`select ${list} from generate_series(0, 2) i`)
  const decoder = new CopyDecoder(read, columns.length)
  const rows = []
  for (let at = 0; at < stream.length; at += size)
    rows.push(...[...decoder.push(stream.subarray(at, at + size))].flat())
  expect(rows).toEqual([0, 1, 2].map(expected))
  expect(rows[1]?.repeated).toBe(rows[0]?.repeated)
})

test('yields the rows of a large chunk in small batches', async () => {
  const stream = await copied('select i from generate_series(1, 1000) i')
  const decoder = new CopyDecoder((column) => column.integer('i'), 1)
  const batches: number[][] = []
  for (const at of [0, stream.length / 2]) batches.push(...decoder.push(stream.subarray(at, at + stream.length / 2)))
  expect(batches.flat()).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1))
  expect(Math.max(...batches.map(({ length }) => length))).toBe(256)
})

test('decodes the output of record_send', async () => {
  const { rows } = await database.pool.query<{ record: Buffer }>(
    `select record_send(t) as record from generate_series(0, 1) i cross join lateral (select ${list}) t`,
  )
  const decoder = new RowDecoder()
  const decoded = rows.map(({ record }) => (decoder.beginRecord(record), read(decoder)))
  expect(decoded).toEqual([0, 1].map(expected))
})

test('rounds times of all centuries down to milliseconds, except infinite ones', async () => {
  const readTime = (column: ColumnReader) => column.timeOrNever('t')
  const decoded: number[] = []
  for (const time of [...TIMES, 'infinity', '-infinity']) {
    const decoder = new CopyDecoder(readTime, 1)
    decoded.push(...[...decoder.push(await copied(`select '${time}'::timestamptz`))].flat())
  }
  const { rows } = await database.pool.query<{ ms: string }>(
    `select floor(extract(epoch from t::timestamptz) * 1000)::text as ms from unnest($1::text[]) t`,
    [TIMES],
  )
  expect(decoded).toEqual([...rows.map(({ ms }) => Number(ms)), Infinity, -Infinity])
})

test('rejects a row with the wrong number of fields', async () => {
  const stream = await copied('select 1, 2')
  expect(() => new CopyDecoder(read, columns.length).push(stream).next()).toThrow('COPY sent 2 fields instead of 11')
})
