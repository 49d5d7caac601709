import {
  createTestDatabase,
  insertLicense,
  insertOrganization,
  type TestDatabase,
  toActivityColumns,
} from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { dropOldPartitions, type RecordBatch, uuidToBytes, uuidv7, writeBehind } from '../../src/index.ts'
import { persist } from './persist.ts'

const DAY_MS = 86_400_000

let database: TestDatabase
let organizationId: string
let licenseId: string

beforeAll(async () => {
  database = await createTestDatabase()
  organizationId = await insertOrganization(database.pool)
  licenseId = (await insertLicense(database.pool, { organizationId })).id
})

afterAll(() => database.drop())

function batchAt(atMs: number): RecordBatch {
  const row = { count: 1, code: 'VALID', machineId: null }
  const license = uuidToBytes(licenseId)
  return {
    rules: [],
    overuse: [],
    keyUses: [],
    hostnames: [],
    checks: [
      { ...row, hourMs: atMs - (atMs % 3_600_000), organizationId: uuidToBytes(organizationId), productId: null },
    ],
    activity: toActivityColumns([{ ...row, minuteMs: atMs, licenseId: license, firstAtMs: atMs, lastAtMs: atMs }]),
  }
}

async function partitions(parent: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1`,
    [parent],
  )
  return rows.map((row) => row.name)
}

async function count(table: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(`select count(*)::integer as n from ${table}`)
  return rows[0]?.n ?? -1
}

async function sum(table: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(`select sum(count)::integer as n from ${table}`)
  return rows[0]?.n ?? -1
}

test('creates the partitions for a year of usage that several validators write concurrently', async () => {
  const now = Date.now()
  const days = Array.from({ length: 26 }, (_, i) => now - i * 14 * DAY_MS)
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      const validator = uuidv7()
      for (const [i, day] of days.entries())
        await persist(() => writeBehind(database.pool, validator, i + 1, batchAt(day)))
    }),
  )
  expect((await partitions('activity')).length).toBeGreaterThanOrEqual(26)
  expect((await partitions('check_counts')).length).toBeGreaterThanOrEqual(12)
  expect(await count('activity')).toBe(26)
  expect(await count('check_counts')).toBe(26)
  const { rows } = await database.pool.query(
    'select from activity where count <> 4 union all select from check_counts where count <> 4',
  )
  expect(rows).toEqual([])
})

test('creates partitions with exactly the indexes of their parent', async () => {
  const { rows } = await database.pool.query<{ table: string; own: number; attached: number }>(
    `select p.inhparent::regclass::text as table, count(distinct i.indexrelid)::integer as own, count(distinct a.inhrelid)::integer as attached
     from pg_inherits p join pg_index i on i.indrelid = p.inhrelid left join pg_inherits a on a.inhrelid = i.indexrelid
     where p.inhparent in ('activity'::regclass, 'check_counts'::regclass)
     group by p.inhparent, p.inhrelid`,
  )
  const perPartition = new Set(rows.map(({ table, own, attached }) => `${table} ${own} ${attached}`))
  expect([...perPartition].toSorted()).toEqual(['activity 4 4', 'check_counts 2 2'])
})

test('drops expired partitions and keeps the others', async () => {
  const before = await partitions('activity')
  const dropped = await dropOldPartitions(database.pool, 90, 180)
  expect(dropped.length).toBeGreaterThan(15)
  const left = await partitions('activity')
  expect(left).toEqual(before.filter((name) => !dropped.includes(name)))
  const { rows } = await database.pool.query<{ days: number }>(
    `select extract(day from now() - min(at))::integer as days from activity`,
  )
  expect(rows[0]?.days).toBeGreaterThanOrEqual(84) // no row younger than 90 days was dropped
  expect(rows[0]?.days).toBeLessThan(105)
  expect(await dropOldPartitions(database.pool, 90, 180)).toEqual([])
})

test('skips a partition that is being read, without waiting, and drops it after the read', async () => {
  const reader = await database.pool.connect()
  await reader.query('begin; select count(*) from activity')
  expect(await dropOldPartitions(database.pool, 30, 180)).toEqual([])
  expect(await writeBehind(database.pool, uuidv7(), 1, batchAt(Date.now() - 200 * DAY_MS))).toBe('applied')
  await reader.query('rollback')
  reader.release()
  expect((await dropOldPartitions(database.pool, 30, 180)).length).toBeGreaterThan(2)
})

test('stores counts with a time that is wrong by centuries in the current partition', async () => {
  const before = await partitions('activity')
  const checks = await sum('activity')
  const validator = uuidv7()
  await writeBehind(database.pool, validator, 1, batchAt(Date.UTC(2525, 1, 1)))
  await writeBehind(database.pool, validator, 2, batchAt(0))
  expect(await partitions('activity')).toEqual(before)
  expect(await sum('activity')).toBe(checks + 2)
})
