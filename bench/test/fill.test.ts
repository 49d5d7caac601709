import { createTestDatabase, insertApiKey } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { fillDatabase } from '../src/data/fill.ts'
import type { Shape } from '../src/data/population.ts'
import { startManagement } from '../src/harness/servers.ts'

const shape: Shape = { seed: 3, licenses: 2000, rules: 500, organizations: 4, machinesPerLicense: 3, maxMachines: 5 }
const INDEXES = `select indexdef from pg_indexes where tablename in ('licenses', 'machines', 'access_rules', 'customers') order by indexdef`

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

async function list(query: string): Promise<unknown[]> {
  return (await database.pool.query<Record<string, unknown>>(query)).rows
}

test('fills the tables, with valid references of licenses and rules, and restores the indexes of the migrations', async () => {
  const indexes = await list(INDEXES)
  await fillDatabase(database.url, shape)
  expect(await list(INDEXES)).toEqual(indexes)
  expect(await list('select count(*)::int as n from licenses')).toEqual([{ n: 2000 }])
  expect(await list('select count(*)::int as n from access_rules')).toEqual([{ n: 508 }])
  expect(await list('select distinct count(*)::int as n from machines group by license_id')).toEqual([{ n: 3 }])
  expect(await list('select distinct used from license_slots')).toEqual([{ used: 3 }])
  expect(await list('select count(*)::int as n from access_rule_counters')).toEqual([{ n: 508 }])
  // Foreign keys are disabled while the database is filled, so the test checks the references of licenses and rules.
  const broken = await list(`select l.id from licenses l
    left join products p on (p.organization_id, p.id) = (l.organization_id, l.product_id)
    left join customers c on (c.organization_id, c.id) = (l.organization_id, l.customer_id)
    where p.id is null or c.id is null
    union all select r.id from access_rules r
    left join licenses l on (l.organization_id, l.id) = (r.organization_id, r.license_id)
    left join products p on (p.organization_id, p.id) = (r.organization_id, r.product_id)
    left join customers c on (c.organization_id, c.id) = (r.organization_id, r.customer_id)
    where (r.license_id is not null and l.id is null) or (r.product_id is not null and p.id is null)
       or (r.customer_id is not null and c.id is null)`)
  expect(broken).toEqual([])
})

test('rejects a seed whose rows the database already contains', async () => {
  await expect(fillDatabase(database.url, shape)).rejects.toThrow(/another --seed/)
})

test('the management API returns the rows of a generated organization', { timeout: 60_000 }, async () => {
  const [{ id: organizationId }] = z
    .tuple([z.object({ id: z.string() })])
    .parse(await list('select id from organizations order by id limit 1'))
  const permissions = ['licenses.read', 'products.read', 'customers.read', 'credentials.write']
  const { secret } = await insertApiKey(database.pool, { organizationId, kind: 'MANAGEMENT_TOKEN', permissions })
  const management = await startManagement(database.url)
  try {
    const rows = { 'access-rules': 127, licenses: 500, machines: 1500, products: 10, customers: 50, 'api-keys': 1 }
    for (const [path, count] of Object.entries(rows)) {
      const url = `http://127.0.0.1:${management.port}/api/v1/${path}?limit=100`
      const response = await fetch(url, { headers: { authorization: `Bearer ${secret}` } })
      const text = await response.text()
      expect(response.status, `${path}: ${text}`).toBe(200)
      const { data } = z.object({ data: z.array(z.unknown()) }).parse(JSON.parse(text))
      expect(data.length, path).toBe(Math.min(count, 100))
    }
  } finally {
    await management.stop()
  }
})
