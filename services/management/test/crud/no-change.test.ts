/**
 * Tests that a PATCH without a difference writes nothing: `updatedAt` stays the same, and the audit log and the change log get no entry.
 */

import { member as memberSchema } from '@keyward/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const shape = z.record(z.string(), z.unknown())
const expiresAt = '2040-01-01T00:00:00.000Z'

async function traces(): Promise<unknown> {
  const { rows } = await harness.database.pool.query(
    `select (select count(*) from audit_log) as audited, (select count(*) from change_log) as logged,
       (select count(*) from activity) as activity`,
  )
  return rows[0]
}

async function member(): Promise<string> {
  const body = { email: 'm@example.com', permissions: ['audit.read'] }
  return expectBody(await vendor.call('POST', 'members', { body }), 201, memberSchema).id
}

const license = async () =>
  (await vendor.license({ policy: { type: 'TRIAL', maxMachines: 3, expiresAt }, metadata: { a: { b: [1] } } })).id

const cases: [string, () => Promise<string>, object, object][] = [
  ['products', () => vendor.product('Studio'), { name: 'Studio', metadata: {} }, { metadata: { a: 1 } }],
  ['customers', () => vendor.customer({ externalId: 'c' }), { externalId: 'c', name: null }, { name: 'Ada' }],
  [
    'licenses',
    license,
    { policy: { maxMachines: 3, expiresAt: '2040-01-01T01:00:00+01:00' }, metadata: { a: { b: [1] } } },
    { policy: { maxMachines: 4 } },
  ],
  [
    'access-rules',
    async () => (await vendor.rule({ note: 'n', expiresAt })).id,
    { note: 'n', expiresAt, allowSuspendedOrExpired: false },
    { note: null },
  ],
  ['members', member, { permissions: ['audit.read', 'audit.read'] }, { permissions: [] }],
]

test.each(cases)('%s: a PATCH without a difference writes nothing', async (path, make, same, other) => {
  const id = await make()
  const patch = async (body: object) => expectBody(await vendor.call('PATCH', `${path}/${id}`, { body }), 200, shape)
  const before = expectBody(await vendor.call('GET', `${path}/${id}`), 200, shape)
  const standing = await traces()
  expect(await patch({})).toEqual(before)
  expect(await patch(same)).toEqual(before)
  expect(await traces()).toEqual(standing)
  const changed = await patch(other)
  expect(changed).toMatchObject(other)
  expect(changed['updatedAt']).not.toBe(before['updatedAt'])
  expect(await traces()).not.toEqual(standing)
})

test('organizations: a PATCH without a difference writes nothing', async () => {
  const patch = (body: object) => harness.call('PATCH', `organizations/${vendor.id}`, { body })
  const standing = await traces()
  expect((await patch({ name: 'Acme', plan: 'STANDARD' })).status).toBe(200)
  expect((await patch({})).status).toBe(200)
  expect(await traces()).toEqual(standing)
  expect((await patch({ plan: 'LITE' })).status).toBe(200)
  expect(await traces()).not.toEqual(standing)
  const own = await vendor.call('GET', 'organization')
  expect(Object.keys(expectBody(own, 200, shape))).toEqual(['id', 'name', 'plan', 'usage', 'quotas', 'createdAt'])
})
