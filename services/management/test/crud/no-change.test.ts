/**
 * Tests that a PATCH writes only differences. Without a difference, `updatedAt` stays the same, and the audit log and the change log get no
 * entry.
 */

import { createHash } from 'node:crypto'

import { member as memberSchema } from '@keyward/contract'
import { auditLog } from '@keyward/contract/management/audit'
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
  expect(Object.keys(expectBody(own, 200, shape))).toEqual([
    'id',
    'name',
    'plan',
    'timeZone',
    'accentColor',
    'signsAnswers',
    'mailSenderName',
    'mailReplyTo',
    'mailKeys',
    'mailPortal',
    'mailEndingDays',
    'mailEnabled',
    'usage',
    'quotas',
    'createdAt',
  ])
})

test('an audit entry contains the members of long metadata that differ, or the hash of the whole', async () => {
  const id = await vendor.product()
  const note = 'x'.repeat(1_000)
  const long = { one: note, two: note, color: 'red' }
  const change = async (metadata: object) => {
    expect((await vendor.call('PATCH', `products/${id}`, { body: { metadata } })).status).toBe(200)
    const { data } = expectBody(
      await vendor.call('GET', `audit-log?resourceId=${id}&limit=1`),
      200,
      auditLog.listAuditLog.returns,
    )
    return { changes: data[0]?.changes, before: data[0]?.before }
  }
  const hashOf = (text: string) => ({ sha256: createHash('sha256').update(text).digest('hex'), bytes: text.length })
  expect(await change({ color: 'red' })).toEqual({
    changes: { metadata: { color: 'red' } },
    before: { metadata: {} },
  })
  expect((await change(long)).changes).toEqual({
    metadata: hashOf(`{"color":"red","one":"${note}","two":"${note}"}`),
  })
  expect(await change({ ...long, color: 'blue', added: 1 })).toEqual({
    changes: { metadata: { color: 'blue', added: 1 } },
    before: { metadata: { color: 'red' } },
  })
  const { changes, before } = await change({ two: note.replaceAll('x', 'y'), one: note })
  // Equal metadata has the same hash on both sides, whatever the order of its members.
  expect(changes).toEqual({ metadata: { two: note.replaceAll('x', 'y') } })
  expect(before).toEqual({
    metadata: hashOf(`{"added":1,"color":"blue","one":"${note}","two":"${note}"}`),
  })
})
