import { setTimeout as sleep } from 'node:timers/promises'

import { customer as customerSchema, page } from '@keyward/contract'
import { event } from '@keyward/contract/management/events'
import { order as orderSchema, orders as operations } from '@keyward/contract/management/orders'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

const MS_PER_DAY = 86_400_000
let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
})
beforeEach(async () => {
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const ADA = { email: 'ada@example.com' }
const at = (days: number) => new Date(Date.now() + days * MS_PER_DAY).toISOString()
const send = (body: object, path = 'shop/1/1') =>
  vendor.call('PUT', `orders/${path}`, { body: { customer: ADA, ...body } })
const put = async (body: object, path?: string) => expectBody(await send(body, path), 200, orderSchema)

test('a paid line creates its license once, and later states renew, suspend, reinstate and revoke it', async () => {
  const { id: templateId } = await vendor.template()
  const paid = { templateId, state: 'paid', paidThrough: at(30), occurredAt: at(-3) }
  const first = await put(paid)
  expect(first.licenses).toMatchObject([{ status: 'active', templateId, policy: { expiresAt: paid.paidThrough } }])
  expect(await put(paid)).toEqual(first)
  const both = await Promise.all([put(paid), put(paid), put(paid)])
  expect(both.map(({ licenses }) => licenses)).toEqual([first.licenses, first.licenses, first.licenses])
  const renewed = await put({ ...paid, paidThrough: at(60), occurredAt: at(-2) })
  expect(renewed.licenses).toMatchObject([{ id: first.licenses[0]?.id, policy: { expiresAt: renewed.paidThrough } }])
  // An event that arrives late changes nothing.
  expect(await put(paid)).toEqual(renewed)
  const state = async (name: string, occurredAt: string) => {
    const { licenses, ...line } = await put({ templateId, state: name, occurredAt })
    return [
      line.state,
      ...licenses.map(({ status, policy }) => `${status} ${policy.expiresAt === renewed.paidThrough}`),
    ]
  }
  expect(await state('canceled', at(-1.9))).toEqual(['canceled', 'active true'])
  expect(await state('disputed', at(-1.8))).toEqual(['disputed', 'suspended true'])
  expect(await state('paid', at(-1.7))).toEqual(['paid', 'active true'])
  expect(await state('refunded', at(-1.6))).toEqual(['refunded', 'revoked true'])
  expect(await state('paid', at(-1.5))).toEqual(['paid', 'revoked true'])
  const types = expectBody(await vendor.call('GET', 'events?type=license.*'), 200, page(event)).data.map(
    ({ type }) => type,
  )
  expect(types.toReversed()).toEqual([
    'license.created',
    'license.renewed',
    'license.suspended',
    'license.reinstated',
    'license.revoked',
  ])
})

test('a refund that arrives before its payment leaves no license', async () => {
  const { id: templateId } = await vendor.template()
  expect((await put({ templateId, state: 'refunded', occurredAt: at(-1) })).licenses).toEqual([])
  expect(await put({ templateId, state: 'paid', occurredAt: at(-2) })).toMatchObject({
    state: 'refunded',
    licenses: [],
  })
})

test('a change from the future counts as now, so a later refund still counts', async () => {
  const { id: templateId } = await vendor.template()
  const { occurredAt } = await put({ templateId, state: 'paid', occurredAt: at(365) })
  expect(Date.parse(occurredAt)).toBeLessThanOrEqual(Date.now())
  expect((await put({ templateId, state: 'refunded' })).licenses).toMatchObject([{ status: 'revoked' }])
})

test('a quantity creates several licenses, or one license for several machines', async () => {
  const policy = { type: 'PERPETUAL', maxMachines: 3 }
  const several = await vendor.template({ policy })
  const one = await vendor.template({ policy, orders: { quantity: 'machines' } })
  const limits = async (templateId: string, quantity: number) => {
    const { licenses } = await put({ templateId, state: 'paid', quantity }, `shop/${templateId}/a%20line`)
    return licenses.map(({ policy: { maxMachines } }) => maxMachines)
  }
  expect(await limits(several.id, 2)).toEqual([3, 3])
  expect(await limits(several.id, 3)).toEqual([3, 3, 3])
  expect(await limits(one.id, 2)).toEqual([6])
  expect(await limits(one.id, 4)).toEqual([12])
})

test('a vendor can switch the effects of refunds and disputes off', async () => {
  const { id: templateId } = await vendor.template({ orders: { refund: 'none', dispute: 'none' } })
  await put({ templateId, state: 'paid', paidThrough: at(30), occurredAt: at(-3) })
  for (const [i, state] of ['disputed', 'refunded'].entries())
    expect((await put({ templateId, state, occurredAt: at(i - 2) })).licenses).toMatchObject([{ status: 'active' }])
})

test('a price selects its template, and an unknown or ambiguous one is rejected', async () => {
  const { id, productId } = await vendor.template({ priceIds: ['price_1', 'price_2'] })
  expect(await put({ priceId: 'price_2', state: 'paid' })).toMatchObject({ templateId: id })
  expect((await send({ priceId: 'price_3', state: 'paid' })).text).toContain('"#/priceId"')
  await vendor.template({ priceIds: ['price_2'] }, productId)
  expect((await send({ priceId: 'price_2', state: 'paid' }, 'shop/2/1')).text).toContain('only one template')
  expect(outcome(await send({ priceId: 'price_1', templateId: id, state: 'paid' }))).toBe('422 INVALID_REQUEST')
  expect(outcome(await send({ templateId: id, state: 'paid', quantity: 101 }))).toBe('422 INVALID_REQUEST')
  expect(outcome(await send({ templateId: id, state: 'paid' }, 'Shop/1/1'))).toBe('404 NOT_FOUND')
  const other = await createVendor(harness)
  const { id: foreign } = await other.template()
  expect((await send({ templateId: foreign, state: 'paid' }, 'shop/3/1')).text).toContain('"#/templateId"')
})

test('the buyer is the customer with the external id, or otherwise with the e-mail address', async () => {
  const { id: templateId } = await vendor.template()
  const known = await vendor.customer({ email: 'ADA@example.com' })
  let orders = 0
  const buyer = async (customer: object) => {
    const { licenses } = await put({ templateId, state: 'paid', customer }, `shop/buyer-${++orders}/1`)
    return licenses[0]?.customerId
  }
  expect(await buyer(ADA)).toBe(known)
  const external = await buyer({ email: 'eve@example.com', externalId: 'cus_1', name: 'Eve' })
  expect(await buyer({ email: 'other@example.com', externalId: 'cus_1' })).toBe(external)
  const created = await vendor.call('GET', `customers/${external}`)
  expect(expectBody(created, 200, customerSchema)).toMatchObject({ externalId: 'cus_1', name: 'Eve' })
  const twins = await Promise.all([1, 2, 3].map(() => buyer({ email: 'new@example.com' })))
  expect(new Set(twins).size).toBe(1)
})

test('a success page receives the keys as soon as the order is put', async () => {
  const { id: templateId } = await vendor.template()
  const read = (query: string) => vendor.call('GET', `orders/shop/late${query}`)
  expect(outcome(await read(''))).toBe('404 NOT_FOUND')
  const page5 = read('?wait=5')
  await sleep(200)
  const { licenses } = await put({ templateId, state: 'paid' }, 'shop/late/1')
  const { lines } = expectBody(await page5, 200, operations.readOrder.returns)
  expect(lines.map((line) => line.licenses)).toEqual([licenses])
  expect(outcome(await read('?wait=11'))).toBe('422 INVALID_REQUEST')
  const other = await createVendor(harness)
  expect(outcome(await other.call('GET', 'orders/shop/late'))).toBe('404 NOT_FOUND')
  const list = (filter: string) => vendor.call('GET', `orders?${filter}`)
  expect(expectBody(await list('state=paid&provider=shop'), 200, page(orderSchema)).data).toHaveLength(1)
  expect(expectBody(await list('state=refunded'), 200, page(orderSchema)).data).toEqual([])
})
