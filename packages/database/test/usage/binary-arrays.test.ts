import { randomBytes } from 'node:crypto'

import { createTestDatabase, random, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { bytesToUuid } from '../../src/ids.ts'
import {
  booleanArray,
  byteaArray,
  float8Array,
  integerArray,
  textArray,
  uuidArray,
} from '../../src/usage/binary-arrays.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Sends an array to Postgres and returns the array that Postgres sends back. */
async function received(type: string, array: Buffer): Promise<unknown> {
  const { rows } = await database.pool.query<{ array: unknown }>(`select $1::${type}[] as array`, [array])
  return rows[0]?.array
}

test.each([0, 1, 2, 1_000])('Postgres decodes arrays of %i values', async (count) => {
  const { int } = random(count)
  const integers = Int32Array.from({ length: count }, () => int(2 ** 32) - 2 ** 31)
  expect(await received('integer', integerArray(integers))).toEqual([...integers])
  const moments = Float64Array.from({ length: count }, () => Date.now() + int(2 ** 31) / 8)
  expect(await received('float8', float8Array(moments))).toEqual([...moments])
  const flags = Uint8Array.from({ length: count }, () => int(2))
  expect(await received('boolean', booleanArray(flags))).toEqual(Array.from(flags, Boolean))
  const words = ['VALID', '', 'A "B", {C\\}']
  const places = Uint8Array.from({ length: count }, () => int(words.length))
  expect(await received('text', textArray(places, words))).toEqual(Array.from(places, (place) => words[place]))
  const ids = randomBytes(count * 16)
  const texts = Array.from({ length: count }, (_, i) => bytesToUuid(ids.subarray(i * 16, i * 16 + 16)))
  expect(await received('uuid', uuidArray(ids))).toEqual(texts)
})

test('encodes byte strings from an offset array or a part of it, and empty strings as null', async () => {
  const { int } = random(5)
  const list = Array.from({ length: 600 }, () => randomBytes(int(3) === 0 ? 0 : int(300)))
  const offsets = Int32Array.from([0, ...list.map(() => 0)])
  for (const [i, { length }] of list.entries()) offsets[i + 1] = (offsets[i] ?? 0) + length
  const expected = list.map((bytes) => (bytes.length === 0 ? null : bytes))
  expect(await received('bytea', byteaArray(offsets, Buffer.concat(list)))).toEqual(expected)
  const part = byteaArray(offsets.subarray(100, 201), Buffer.concat(list))
  expect(await received('bytea', part)).toEqual(expected.slice(100, 200))
  expect(await received('bytea', byteaArray(Int32Array.of(0), Buffer.alloc(0)))).toEqual([])
})

test('throws for an index beyond the list of words', () => {
  expect(() => textArray(Uint8Array.of(0, 2), ['VALID', 'EXPIRED'])).toThrow(RangeError)
})
