import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('new_id() returns version 7 UUIDs that contain the current time and sort by creation within a millisecond', async () => {
  const { rows } = await database.pool.query<{ before: string; id: string; after: string }>(
    `select (extract(epoch from clock_timestamp()) * 1000000)::bigint::text as before, new_id() as id,
       (extract(epoch from clock_timestamp()) * 1000000)::bigint::text as after
     from generate_series(1, 5000)`,
  )
  const times = rows.map(({ id }) => {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    return id.slice(0, 18)
  })
  expect(times.toSorted()).toEqual(times)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  for (const { before, id, after } of rows) {
    const ms = Number.parseInt(id.replace('-', '').slice(0, 12), 16)
    const us = ms * 1000 + (Number.parseInt(id.slice(15, 18), 16) * 1000) / 4096
    expect(us).toBeGreaterThan(Number(before) - 1) // a fraction of 4096 steps is at most a microsecond too low
    expect(us).toBeLessThanOrEqual(Number(after))
  }
})
