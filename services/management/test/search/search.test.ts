/** The search over everything, and the filters of alerts, activity and the audit log. */

import { createdToken, page } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { searchResults } from '@keyward/contract/management/search'
import { uuidv7 } from '@keyward/database'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const find = async (q: string, token = vendor.managementToken) =>
  expectBody(await harness.as(token)('GET', `search?q=${encodeURIComponent(q)}`), 200, searchResults)
const list = z.object({ data: z.array(z.looseObject({ id: z.string() })) })
const ids = async (path: string) => expectBody(await vendor.call('GET', path), 200, list).data.map(({ id }) => id)

test('finds licenses, customers, products and rules by parts of their names and values', async () => {
  const customerId = await vendor.customer({
    email: 'Grace@Example.org',
    name: 'Grace 100%_Hopper',
    externalId: 'CRM-4711',
  })
  const productId = await vendor.product('Acme Studio Pro')
  const license = await vendor.license({ key: 'AbCd-EFGH-1234', customerId, productId })
  await vendor.license({ key: 'ABCE', customerId, productId })
  for (const q of ['AbCd-EFGH-1234', ' abcd-efgh-1234\n', 'a b c d', 'abcd-'])
    expect((await find(q)).licenses.map(({ id }) => id)).toEqual([license.id])
  expect((await find('abc')).licenses).toHaveLength(2)
  for (const q of ['grace@', 'EXAMPLE.ORG', 'hopper', '100%_h', 'crm-47'])
    expect((await find(q)).customers.map(({ id }) => id)).toEqual([customerId])
  for (const q of ['100_', 'gr', 'org\ngrace', '%%%', '\\\\\\']) expect((await find(q)).customers).toEqual([])
  expect((await find('studio p')).products.map(({ id }) => id)).toEqual([productId])
  const wide = await vendor.rule({ value: '10.0.0.0/8' })
  const country = await vendor.rule({ type: 'COUNTRY', value: 'DE' })
  expect((await find('10.1.2.3')).accessRules.map(({ id }) => id)).toEqual([wide.id])
  expect((await find('de')).accessRules.map(({ id }) => id)).toEqual([country.id])
  expect((await find(customerId)).accessRules).toEqual([])
  for (const q of ['', ' ', 'x'.repeat(201), 'a%00b'])
    expect(outcome(await vendor.call('GET', `search?q=${q.includes('%') ? q : encodeURIComponent(q)}`))).toBe(
      '422 INVALID_REQUEST',
    )
})

test('returns at most 10 of each kind, and nothing that the caller may not read', async () => {
  const own = await createVendor(harness)
  for (let i = 0; i < 12; i++) await own.customer({ email: `many${i}@example.net` })
  const productId = await own.product('many')
  const customerId = await own.customer({ email: 'one@example.net' })
  for (let i = 0; i < 12; i++) await own.license({ key: `MANY-${i}`, productId, customerId })
  const all = await find('many', own.managementToken)
  expect([all.licenses.length, all.customers.length, all.products.length]).toEqual([10, 10, 1])
  expect(await find('many')).toEqual({ licenses: [], customers: [], products: [], accessRules: [] })
  const body = { name: 'support', permissions: ['customers.read'] }
  const { secret = '' } = expectBody(await own.call('POST', 'tokens', { body }), 201, createdToken)
  const some = await find('many', secret)
  expect([some.licenses.length, some.customers.length, some.products.length]).toEqual([0, 10, 0])
})

test('lists audit entries by their filters, with the values before and after a change', async () => {
  const own = await createVendor(harness)
  const entries = async (query: string) =>
    expectBody(await own.call('GET', `audit-log?${query}`), 200, page(auditEntry)).data
  const product = await own.product('Before')
  const beforeChange = new Date().toISOString()
  await own.call('PATCH', `products/${product}`, { body: { name: 'After', metadata: {} } })
  const rule = await own.rule({ value: '192.0.2.1', note: 'old' })
  await own.call('PATCH', `access-rules/${rule.id}`, { body: { note: 'new', mode: 'MONITOR' } })
  const [changed] = await entries(`resourceId=${product}&action=product.changed`)
  expect(changed).toMatchObject({ changes: { name: 'After' }, before: { name: 'Before' } })
  expect(await entries('action=access_rule.changed')).toMatchObject([
    { changes: { note: 'new', mode: 'MONITOR' }, before: { note: 'old', mode: 'ENFORCE' } },
  ])
  expect((await entries('resourceType=access_rule')).map(({ action }) => action)).toEqual([
    'access_rule.changed',
    'access_rule.created',
  ])
  const actorId = changed?.actor.id ?? ''
  expect((await entries(`actorId=${actorId}`)).length).toBeGreaterThan(3)
  expect(await entries(`actorId=${uuidv7()}`)).toEqual([])
  const since = await entries(`from=${beforeChange}`)
  expect(since.map(({ action }) => action)).toEqual(['access_rule.changed', 'access_rule.created', 'product.changed'])
  const until = (await entries(`to=${beforeChange}`)).map(({ id }) => id)
  expect(until.length).toBeGreaterThan(0)
  expect(until).not.toContain(since[0]?.id)
  expect(outcome(await own.call('GET', 'audit-log?from=yesterday'))).toBe('422 INVALID_REQUEST')
})

test('lists alerts and activity by their filters', async () => {
  const [first, second] = [await vendor.license(), await vendor.license()]
  const { pool } = harness.database
  const insertAlert = async (licenseId: string, acknowledgedAt: Date | null) => {
    const id = uuidv7()
    await pool.query(
      `insert into alerts (id, organization_id, license_id, count, first_at, last_at, acknowledged_at)
       values ($1, $2, $3, 1, now(), now(), $4)`,
      [id, vendor.id, licenseId, acknowledgedAt],
    )
    return id
  }
  const open = await insertAlert(first.id, null)
  const closed = await insertAlert(first.id, new Date())
  const other = await insertAlert(second.id, null)
  expect(await ids('alerts?open=true')).toEqual([other, open])
  expect(await ids('alerts?open=false')).toEqual([closed])
  expect(await ids(`alerts?licenseId=${first.id}`)).toEqual([closed, open])
  const from = new Date().toISOString()
  await vendor.call('POST', `licenses/${first.id}/suspend`)
  const path = `licenses/${first.id}/activity`
  expect(await ids(`${path}?type=LICENSE_SUSPENDED`)).toHaveLength(1)
  expect(await ids(`${path}?from=${from}`)).toHaveLength(1)
  expect(await ids(`${path}?to=${from}`)).toHaveLength(1)
  expect(await ids(`${path}?code=VALID`)).toEqual([])
  expect(await ids(`${path}?machineId=m1`)).toEqual([])
  expect(await ids(`activity?type=LICENSE_SUSPENDED`)).toHaveLength(1)
})
