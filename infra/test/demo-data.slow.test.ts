import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDemoData } from '../demo-data/demo-data.ts'
import { planDemoData } from '../demo-data/plan.ts'
import { type Demo, ensureDemo, type ManagementAccess } from '../shared/demo.ts'
import { type ServiceProcess } from '../shared/service-process.ts'
import { startManagement } from './management.ts'

const DAY_MS = 86_400_000

let database: TestDatabase
let management: ServiceProcess
let access: ManagementAccess
let demo: Demo

beforeAll(async () => {
  database = await createTestDatabase()
  ;({ management, access } = await startManagement(database.url))
  ;({ demo } = await ensureDemo(access, undefined, () => Promise.resolve()))
  await createDemoData(access, demo, database.url)
}, 120_000)

afterAll(async () => {
  await management.stop()
  await database.drop()
})

/** Returns the numbers of rows of the tables, and the numbers of checks and matches that the rows count. */
async function totals(): Promise<Record<string, number>> {
  const { rows } = await database.pool.query<Record<string, number>>(`select
    (select count(*) from products)::int as products, (select count(*) from customers)::int as customers,
    (select count(*) from licenses)::int as licenses, (select count(*) from machines)::int as machines,
    (select count(*) from members)::int as members, (select count(*) from access_rules)::int as rules,
    (select sum(count) from check_counts)::int as checks, (select sum(count) from activity where type = 'CHECK')::int as activity,
    (select count(*) from alerts)::int as alerts, (select sum(match_count) from access_rule_counters)::int as matches`)
  return rows[0]!
}

async function distinct(sql: string): Promise<unknown[]> {
  return (await database.pool.query<{ value: unknown }>(sql)).rows.map(({ value }) => value)
}

test('creates 3 products, 60 customers, 200 licenses in all states, and a month of checks', async () => {
  const created = await totals()
  expect(created).toMatchObject({ products: 3, customers: 60, licenses: 200, members: 4 })
  // Checks of unknown keys are in the analytics, but not in the activity feed.
  const unknown = await distinct(`select sum(count)::int as value from check_counts where code = 'NOT_FOUND'`)
  expect(created['checks']).toBe(created['activity']! + Number(unknown[0]))
  expect(created['alerts']).toBeGreaterThan(9)
  const states = await distinct(`select distinct case when status <> 'active' then status
    when expires_at is null and duration_days is not null then 'waiting' when lease_seconds is not null then 'floating'
    when expires_at <= now() then 'expired' when expires_at < now() + interval '30 days' then 'expiring'
    when max_machines is null then 'unlimited' when entitlements is not null then 'entitled' else status end as value
    from licenses order by 1`)
  expect(states).toEqual(
    expect.arrayContaining([
      'active',
      'suspended',
      'revoked',
      'expired',
      'expiring',
      'floating',
      'waiting',
      'unlimited',
    ]),
  )
  expect(states).toContain('entitled')
  const codes = await distinct('select distinct code as value from check_counts order by 1')
  expect(codes).toHaveLength(8)
})

test('creates rules of every kind, type, mode and scope, and two sets', async () => {
  const found = await distinct(
    `select distinct unnest(array[kind, type, mode, scope]) as value from access_rules order by 1`,
  )
  const everything = [
    'BLACKLIST',
    'EXCLUSION',
    'RESTRICTION',
    'IP',
    'HWID',
    'COUNTRY',
    'CUSTOMER',
    'ENFORCE',
    'MONITOR',
  ]
  expect(found).toEqual([...everything, 'ORGANIZATION', 'PRODUCT', 'LICENSE'].toSorted())
  expect(await distinct('select name as value from access_rule_sets order by 1')).toEqual([
    'anonymous proxies',
    'shared keys',
  ])
})

test('moves the history into the past, in the order of the ids, and revokes the tokens that created it', async () => {
  const [oldest] = await distinct('select min(created_at) as value from licenses')
  expect(Date.now() - Number(oldest)).toBeGreaterThan(300 * DAY_MS)
  const disordered = await distinct(`select count(*)::int as value from
    (select created_at, lag(created_at) over (order by id) as earlier from licenses) l where created_at < earlier`)
  expect(disordered).toEqual([0])
  const [activity] = await distinct('select min(at) as value from activity')
  expect(Date.now() - Number(activity)).toBeLessThan(31 * DAY_MS)
  const open = await distinct(
    `select name as value from credentials where kind = 'ACCESS_TOKEN' and revoked_at is null`,
  )
  expect(open).toEqual([])
  const names = await distinct(
    `select distinct actor ->> 'name' as value from audit_log where action = 'license.imported'`,
  )
  expect(names).toHaveLength(3)
})

test('creates no duplicates in a second run, and completes missing data', async () => {
  const before = await totals()
  await createDemoData(access, demo, database.url)
  expect(await totals()).toEqual(before)
  await database.pool.query('delete from licenses where key = $1', [planDemoData(0).licenses[7]?.key])
  expect((await totals())['licenses']).toBe(199)
  await createDemoData(access, demo, database.url)
  expect(await totals()).toMatchObject({ licenses: 200, customers: 60, rules: before['rules'] })
}, 120_000)
