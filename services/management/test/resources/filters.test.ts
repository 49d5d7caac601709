/** Tests the filters by metadata and by license, and the totals of lists (docs/api.md#m15), on two organizations with equal data. */

import { accessRule, countedPage, customer as customerSchema, license as licenseSchema } from '@keyward/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
let other: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
  other = await createVendor(harness)
})
afterAll(() => harness.close())

async function list(path: string, item: z.ZodType<{ id: string }>) {
  const { data, total } = expectBody(await vendor.call('GET', path), 200, countedPage(item))
  return { ids: data.map(({ id }) => id).toSorted(), total }
}

test('finds licenses and customers by a member of their metadata, as a text or as another JSON value', async () => {
  const orders: unknown[] = ['A-1', 'A-2', 7, '7', true, 'true', null, { a: 1 }, 'x:y']
  const metadata = (order: unknown) => ({ metadata: { order, channel: 'shop' } })
  const base = { productId: await vendor.product(), customerId: await vendor.customer() }
  const licenses: string[] = []
  const customers: string[] = []
  for (const order of orders) {
    licenses.push((await vendor.license({ ...base, ...metadata(order) })).id)
    customers.push(await vendor.customer(metadata(order)))
  }
  await other.license(metadata('A-1'))
  await vendor.license(base)
  const expected: Record<string, number[]> = {
    'A-1': [0],
    '7': [2, 3],
    '7.0': [2],
    true: [4, 5],
    null: [6],
    'x:y': [8],
    'A-3': [],
    '': [],
  }
  for (const [value, indexes] of Object.entries(expected)) {
    const query = `metadata=${encodeURIComponent(`order:${value}`)}&total=true`
    const found = (all: readonly string[]) => all.filter((_, i) => indexes.includes(i)).toSorted()
    expect(await list(`licenses?${query}`, licenseSchema), value).toEqual({
      ids: found(licenses),
      total: indexes.length,
    })
    expect((await list(`customers?${query}`, customerSchema)).ids, value).toEqual(found(customers))
  }
  expect(outcome(await vendor.call('GET', 'licenses?metadata=order'))).toBe('422 INVALID_REQUEST')
  expect(outcome(await vendor.call('GET', 'licenses?metadata=:x'))).toBe('422 INVALID_REQUEST')
})

test('counts all items of a filter on request', async () => {
  const customerId = await vendor.customer({ email: 'Counted@example.com' })
  const productId = await vendor.product()
  for (const type of ['PERPETUAL', 'PERPETUAL', 'TRIAL'])
    await vendor.license({ customerId, productId, policy: type === 'TRIAL' ? { type, durationDays: 3 } : { type } })
  const { id } = await vendor.license({ customerId, productId })
  await vendor.call('POST', `licenses/${id}/suspend`)
  const total = async (query: string) => (await list(`licenses?limit=1&total=true${query}`, licenseSchema)).total
  expect(await total(`&productId=${productId}`)).toBe(4)
  expect(await total('&email=counted@EXAMPLE.com')).toBe(4)
  expect(await total(`&productId=${productId}&status=active`)).toBe(3)
  expect((await list('licenses?limit=1', licenseSchema)).total).toBeUndefined()
  expect((await list('customers?email=counted@example.com&total=true', customerSchema)).total).toBe(1)
  expect(outcome(await vendor.call('GET', 'licenses?total=yes'))).toBe('422 INVALID_REQUEST')
})

test('lists exactly the rules that can decide a check of a license', async () => {
  const license = await vendor.license()
  const sibling = await vendor.license({ productId: license.productId })
  const country = { type: 'COUNTRY', value: 'AQ' }
  const applying = [
    await vendor.rule({ scope: 'LICENSE', scopeId: license.id }),
    await vendor.rule({ scope: 'PRODUCT', scopeId: license.productId, ...country }),
    await vendor.rule({ kind: 'RESTRICTION', value: '198.51.100.0/24' }),
    await vendor.rule({ ...country, mode: 'MONITOR' }),
    await vendor.rule({ type: 'CUSTOMER', value: license.customerId }),
    await vendor.rule({ type: 'CUSTOMER', value: license.customerId, scope: 'PRODUCT', scopeId: license.productId }),
  ].map(({ id }) => id)
  await vendor.rule({ scope: 'LICENSE', scopeId: sibling.id })
  await vendor.rule({ type: 'CUSTOMER', value: sibling.customerId })
  await vendor.rule({ scope: 'PRODUCT', scopeId: await vendor.product(), ...country })
  await other.rule({ ...country })
  const found = (query = '') => list(`access-rules?licenseId=${license.id}&total=true${query}`, accessRule)
  const all = { ids: applying.toSorted(), total: applying.length }
  expect(await found()).toEqual(all)
  expect(await found('&sort=matchCount')).toEqual(all)
  expect((await found('&type=CUSTOMER')).ids).toEqual(applying.slice(4).toSorted())
  expect((await found('&matches=198.51.100.9')).ids).toEqual([applying[2]])
  const paged = expectBody(
    await vendor.call('GET', `access-rules?licenseId=${license.id}&limit=2`),
    200,
    countedPage(accessRule),
  )
  expect(paged.data.map(({ id }) => id)).toEqual(applying.toSorted().toReversed().slice(0, 2))
  const foreign = await other.call('GET', `access-rules?licenseId=${license.id}&total=true`)
  expect(expectBody(foreign, 200, countedPage(accessRule))).toEqual({ data: [], nextCursor: null, total: 0 })
})
