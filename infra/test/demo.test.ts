import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type DemoState, ensureDemo, type ManagementAccess } from '../shared/demo.ts'
import { type ServiceProcess } from '../shared/service-process.ts'
import { startManagement } from './management.ts'

let database: TestDatabase
let management: ServiceProcess
let access: ManagementAccess

beforeAll(async () => {
  database = await createTestDatabase()
  ;({ management, access } = await startManagement(database.url))
})

afterAll(async () => {
  await management.stop()
  await database.drop()
})

async function count(table: 'organizations' | 'products' | 'customers' | 'licenses'): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(`select count(*)::int as n from ${table}`)
  return rows[0]?.n ?? 0
}

test('completes, without duplicates, a demo that was interrupted after any step', async () => {
  for (let steps = 1; steps <= 4; steps++) {
    let saved: DemoState | undefined
    let left = steps
    const save = (next: DemoState): Promise<void> => {
      saved = next
      return --left === 0 ? Promise.reject(new Error('killed')) : Promise.resolve()
    }
    await expect(ensureDemo(access, undefined, save)).rejects.toThrow('killed')
    left = Number.POSITIVE_INFINITY
    const { demo } = await ensureDemo(access, saved, save)
    expect(saved).toEqual(demo)
    expect(await ensureDemo(access, demo, save)).toEqual({ demo, created: false })
  }
  const tables = ['organizations', 'products', 'customers', 'licenses'] as const
  expect(await Promise.all(tables.map(count))).toEqual([4, 4, 4, 4])
})

test('replaces a demo of another database, and a license that is not active', async () => {
  const nowhere = { organizationId: 'x', managementToken: 'kwm_unknown', apiKey: 'kwk_unknown' }
  const save = (): Promise<void> => Promise.resolve()
  const { demo, created } = await ensureDemo(access, nowhere, save)
  expect(created).toBe(true)
  await database.pool.query(`update licenses set status = 'suspended' where id = $1`, [demo.licenseId])
  const again = await ensureDemo(access, demo, save)
  expect(again.created).toBe(true)
  expect(again.demo).toMatchObject({ organizationId: demo.organizationId, productId: demo.productId })
  expect(again.demo.licenseId).not.toBe(demo.licenseId)
})
