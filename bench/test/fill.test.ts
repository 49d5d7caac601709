import { createTestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { fillDatabase } from '../src/data/fill.ts'
import type { Shape } from '../src/data/population.ts'

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
