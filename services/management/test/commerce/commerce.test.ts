import { license as licenseSchema, page } from '@keyward/contract'
import { alert } from '@keyward/contract/management/activity'
import { connection as connectionSchema, type Shop, shopEvent } from '@keyward/contract/management/commerce'
import { order as orderSchema } from '@keyward/contract/management/orders'
import { HISTORIES, SHOP_SECRET, type ShopHistory, SHOPS, signatureOf } from '@keyward/testkit/shops'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

const DAY_MS = 86_400_000
let harness: Harness
let vendor: Vendor
let ids = 1_000

beforeAll(async () => {
  harness = await startHarness()
})
beforeEach(async () => {
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

type Event = ShopHistory['events'][number]
const lines = z.object({ lines: z.array(orderSchema) })
/** The items of an event of FastSpring. */
const basket = z.object({
  events: z.array(z.looseObject({ data: z.looseObject({ items: z.array(z.looseObject({})) }) })),
})

async function connect(shop: Shop, fields: object = {}): Promise<string> {
  const body = { name: 'My shop', shop, secret: SHOP_SECRET, ...fields }
  return expectBody(await vendor.call('POST', 'commerce', { body }), 201, connectionSchema).id
}

function send(connectionId: string, shop: Shop, { id, body }: Event, signing = {}) {
  const raw = JSON.stringify(body)
  const headers = signatureOf(shop, raw, id, signing)
  return vendor.call('POST', `commerce/${connectionId}/events`, { token: null, raw, headers })
}

async function inbox(connectionId: string) {
  return expectBody(await vendor.call('GET', `commerce/${connectionId}/events`), 200, page(shopEvent)).data
}

async function states(connectionId: string): Promise<string[]> {
  return (await inbox(connectionId)).map(({ state }) => state)
}

/** Waits until no event of the connection is left to be handled. */
async function settled(connectionId: string): Promise<void> {
  await expect
    .poll(async () => (await states(connectionId)).filter((state) => state !== 'DONE' && state !== 'IGNORED'), {
      timeout: 10_000,
    })
    .toEqual([])
}

async function licenses() {
  return expectBody(await vendor.call('GET', 'licenses'), 200, page(licenseSchema)).data
}

/** Starts a shop whose price a template lists, and a purchase in it. */
async function purchase(shop: Shop) {
  const startMs = Math.floor(Date.now() / 1_000) * 1_000 - 40 * DAY_MS
  const history = HISTORIES[shop](String(++ids), startMs)
  const template = await vendor.template({ priceIds: [history.priceId] })
  return { connectionId: await connect(shop), history, startMs, template }
}

test.each(SHOPS)(
  '%s: a purchase yields one key, and each event counts once, although it is sent twice',
  async (shop) => {
    const { connectionId, history, startMs } = await purchase(shop)
    const { events, orderOnPage } = history
    for (const one of events.filter(({ id }) => !id.includes('refunded'))) {
      expect(outcome(await send(connectionId, shop, one))).toBe('200')
      await settled(connectionId)
      expect(await send(connectionId, shop, one)).toMatchObject({ status: 200, body: { stored: 0 } })
    }
    const read = await vendor.call('GET', `orders/${shop}/${orderOnPage}?wait=5`)
    const [line] = expectBody(read, 200, lines).lines
    expect(line).toMatchObject({ state: 'paid', paidThrough: new Date(startMs + 60 * DAY_MS).toISOString() })
    expect(line?.licenses).toMatchObject([{ status: 'active', policy: { expiresAt: line?.paidThrough } }])
    for (const one of events) await send(connectionId, shop, one)
    await settled(connectionId)
    expect(await licenses()).toMatchObject([{ status: 'revoked', key: line?.licenses[0]?.key }])
    expect(await inbox(connectionId)).toHaveLength(events.length)
  },
)

test.each(SHOPS)('%s: events in another order end in the same state', async (shop) => {
  for (const turn of [0, 1, 2]) {
    vendor = await createVendor(harness)
    const { connectionId, history } = await purchase(shop)
    const reversed = history.events.toReversed()
    for (const one of [...reversed.slice(turn), ...reversed.slice(0, turn)]) await send(connectionId, shop, one)
    await settled(connectionId)
    expect((await licenses()).map(({ status }) => status)).toEqual(['revoked'])
    const order = await vendor.call('GET', `orders/${shop}/${history.orderOnPage}`)
    expect(expectBody(order, 200, lines).lines).toMatchObject([{ state: 'refunded' }])
  }
})

test.each(SHOPS)('%s: rejects a wrong signature and another body', async (shop) => {
  const { connectionId, history } = await purchase(shop)
  const one = history.events[0]!
  const refused = async (signing: object) => outcome(await send(connectionId, shop, one, signing))
  expect(await refused({ secret: `${SHOP_SECRET.slice(0, -4)}AAAA` })).toBe('401 UNAUTHENTICATED')
  const raw = JSON.stringify(one.body)
  const headers = signatureOf(shop, raw, one.id)
  const sent = await vendor.call('POST', `commerce/${connectionId}/events`, { token: null, raw: `${raw} `, headers })
  expect(outcome(sent)).toBe('401 UNAUTHENTICATED')
  expect(await inbox(connectionId)).toEqual([])
})

test('verifies the signature of a body before it parses the body', async () => {
  const connectionId = await connect('stripe')
  const post = (headers: Record<string, string>) =>
    vendor.call('POST', `commerce/${connectionId}/events`, { token: null, raw: '{"id":', headers })
  expect(outcome(await post({}))).toBe('401 UNAUTHENTICATED')
  expect(outcome(await post(signatureOf('stripe', '{"id":', '1')))).toBe('400 MALFORMED_JSON')
})

test('a slow event delays no event of another organization', async () => {
  const { connectionId, history, template } = await purchase('polar')
  const other = { vendor: await createVendor(harness), ...HISTORIES.polar('other', Date.now()) }
  const holder = await harness.database.pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from license_templates where id = $1 for update', [template.id])
    await send(connectionId, 'polar', history.events[0]!)
    const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    await expect.poll(async () => (await harness.database.pool.query(blocked)).rowCount).toBeGreaterThan(0)
    const slow = { vendor, connectionId }
    vendor = other.vendor
    await vendor.template({ priceIds: [other.priceId] })
    const fast = await connect('polar')
    await send(fast, 'polar', other.events[0]!)
    await settled(fast)
    vendor = slow.vendor
    expect(await states(connectionId)).toEqual(['PENDING'])
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  await settled(connectionId)
})

test('an event that sells more than 500 licenses fails at once, and changes nothing', async () => {
  await vendor.template({ priceIds: ['price_many'] })
  const connectionId = await connect('stripe')
  const line = { quantity: 100, price: 'price_many', period: { end: 4_000_000_000 } }
  const data = Array.from({ length: 6 }, (_, i) => ({ ...line, id: `il_${i}` }))
  const object = { id: 'in_many', customer_email: 'ada@example.com', lines: { data } }
  const body = { id: 'evt_many', type: 'invoice.paid', livemode: true, created: 1_700_000_000, data: { object } }
  await send(connectionId, 'stripe', { id: 'evt_many', body })
  await expect.poll(async () => (await inbox(connectionId))[0]?.error).toContain('got 6 lines and 600.')
  expect(await licenses()).toEqual([])
})

test.each(['stripe', 'paddle', 'polar'] as const)('%s: rejects a signature of another time', async (shop) => {
  const { connectionId, history } = await purchase(shop)
  const at = (seconds: number) => send(connectionId, shop, history.events[0]!, { nowMs: Date.now() + 1_000 * seconds })
  expect(outcome(await at(-301))).toBe('401 UNAUTHENTICATED')
  expect(outcome(await at(302))).toBe('401 UNAUTHENTICATED')
  expect(await inbox(connectionId)).toEqual([])
})

test.each(['stripe', 'lemonsqueezy', 'fastspring'] as const)('%s: rejects an event of the other mode', async (shop) => {
  const { history } = await purchase(shop)
  const connectionId = await connect(shop, { mode: 'test' })
  expect(outcome(await send(connectionId, shop, history.events[0]!))).toBe('422 INVALID_REQUEST')
  expect(await inbox(connectionId)).toEqual([])
})

test('an event with an unknown price waits with an alert, and continues when a template lists the price', async () => {
  const connectionId = await connect('polar')
  const { events, priceId, orderOnPage } = HISTORIES.polar('9', Date.now() - DAY_MS)
  await send(connectionId, 'polar', events[0]!)
  await expect.poll(() => states(connectionId)).toEqual(['WAITING'])
  expect(await inbox(connectionId)).toMatchObject([{ error: `No template lists the price ${priceId}.`, attempts: 1 }])
  const alerts = () => vendor.call('GET', 'alerts?open=true')
  expect(expectBody(await alerts(), 200, page(alert)).data).toMatchObject([
    { kind: 'EVENT_WAITING', connectionId, count: 1 },
  ])
  const { id } = await vendor.template()
  await vendor.call('PATCH', `templates/${id}`, { body: { priceIds: [priceId] } })
  await settled(connectionId)
  const order = await vendor.call('GET', `orders/polar/${orderOnPage}?wait=5`)
  expect(expectBody(order, 200, lines).lines).toMatchObject([{ templateId: id, licenses: [{ status: 'active' }] }])
})

test('events that wait for the same order do not wake each other', async () => {
  const connectionId = await connect('stripe')
  for (const type of ['charge.refunded', 'charge.dispute.created']) {
    const object = { id: 'ch_1', payment_intent: 'pi_1', refunded: true, status: 'needs_response' }
    const body = { id: type, type, livemode: true, created: 1_700_000_000, data: { object } }
    await send(connectionId, 'stripe', { id: type, body })
  }
  await expect.poll(() => states(connectionId)).toEqual(['WAITING', 'WAITING'])
  const dueNow = `select from commerce_events where connection_id = $1 and next_attempt_at <= now()`
  await expect.poll(async () => (await harness.database.pool.query(dueNow, [connectionId])).rowCount).toBe(0)
  // A second event wakes the first one only when it names the order for the first time.
  expect((await inbox(connectionId)).map(({ attempts }) => attempts)).toEqual([1, 1])
})

test('the metadata of the shop selects the template, and an order sells its other lines without it', async () => {
  const { id } = await vendor.template({ policy: { type: 'PERPETUAL' } })
  const connectionId = await connect('fastspring')
  const { events, orderOnPage } = HISTORIES.fastspring('77', Date.now())
  const sold = basket.parse(events[0]?.body)
  const [item] = sold.events[0]!.data.items
  sold.events[0]!.data.items = [
    { ...item, attributes: { keyward_template: id } },
    { ...item, product: 'mug', attributes: { keyward_template: 'none' } },
    { ...item, product: 'unknown' },
  ]
  await send(connectionId, 'fastspring', { id: '1', body: sold })
  const order = await vendor.call('GET', `orders/fastspring/${orderOnPage}?wait=5`)
  expect(expectBody(order, 200, lines).lines).toMatchObject([{ line: 'studio-77', templateId: id, licenses: [{}] }])
  expect(await inbox(connectionId)).toMatchObject([{ state: 'WAITING', error: 'No template lists the price unknown.' }])
  const body2 = { unknownPrices: 'ignore' }
  expect(outcome(await vendor.call('PATCH', `commerce/${connectionId}`, { body: body2 }))).toBe('200')
  const [event] = await inbox(connectionId)
  await vendor.call('POST', `commerce/${connectionId}/events/${event!.id}/retry`)
  await settled(connectionId)
  expect(await licenses()).toHaveLength(1)
})

test('a connection ignores the states that it does not list, and test orders have a provider of their own', async () => {
  const { events, priceId, orderOnPage } = HISTORIES.paddle('5', Date.now() - 40 * DAY_MS)
  await vendor.template({ priceIds: [priceId] })
  const connectionId = await connect('paddle', { mode: 'test', states: ['paid'] })
  for (const one of events) await send(connectionId, 'paddle', one)
  await settled(connectionId)
  expect(expectBody(await vendor.call('GET', `orders/paddle-test/${orderOnPage}`), 200, lines).lines).toMatchObject([
    { state: 'paid', licenses: [{ status: 'active' }] },
  ])
  expect(outcome(await vendor.call('GET', `orders/paddle/${orderOnPage}`))).toBe('404 NOT_FOUND')
})

test('no response contains a secret, and another vendor finds neither connection nor inbox', async () => {
  const { connectionId, history } = await purchase('stripe')
  await send(connectionId, 'stripe', history.events[0]!)
  const [event] = await inbox(connectionId)
  const all = await Promise.all(
    ['commerce', `commerce/${connectionId}`, 'audit-log'].map((path) => vendor.call('GET', path)),
  )
  expect(all.map(({ text }) => text.includes(SHOP_SECRET))).toEqual([false, false, false])
  const other = await createVendor(harness)
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['GET', '/events'],
    ['POST', `/events/${event!.id}/retry`],
  ] as const) {
    const body = method === 'PATCH' ? { name: 'x' } : undefined
    expect(outcome(await other.call(method, `commerce/${connectionId}${path}`, { body }))).toBe('404 NOT_FOUND')
  }
  const { body, id } = history.events[0]!
  const raw = JSON.stringify(body)
  const unknown = { token: null, raw, headers: signatureOf('stripe', raw, id) }
  expect(outcome(await vendor.call('POST', `commerce/${vendor.id}/events`, unknown))).toBe('404 NOT_FOUND')
})

test('a replaced secret applies at once, and the twenty-first connection is refused', async () => {
  const { connectionId, history } = await purchase('stripe')
  const secret = 'whsec_another_secret_of_these_tests'
  expect(outcome(await vendor.call('PATCH', `commerce/${connectionId}`, { body: { secret } }))).toBe('200')
  expect(outcome(await send(connectionId, 'stripe', history.events[0]!))).toBe('401 UNAUTHENTICATED')
  expect(outcome(await send(connectionId, 'stripe', history.events[0]!, { secret }))).toBe('200')
  for (let i = 1; i < 20; i++) await connect('paddle')
  const body = { name: 'x', shop: 'paddle', secret }
  expect(outcome(await vendor.call('POST', 'commerce', { body }))).toBe('403 QUOTA_EXCEEDED')
})

test('a failing event is attempted ten times, and again on request', async () => {
  const connectionId = await connect('polar')
  const { events, priceId } = HISTORIES.polar('3', Date.now())
  const productId = await vendor.product()
  const [one, two] = [
    await vendor.template({ priceIds: [priceId] }, productId),
    await vendor.template({ priceIds: [priceId] }, productId),
  ]
  await send(connectionId, 'polar', events[0]!)
  await expect.poll(async () => (await inbox(connectionId))[0]?.attempts).toBe(1)
  const [event] = await inbox(connectionId)
  expect(event).toMatchObject({ state: 'PENDING', error: '#/priceId must be in the priceIds of only one template.' })
  await harness.database.pool.query(
    `update commerce_events set attempts = 9, next_attempt_at = now() where id = '${event!.id}'`,
  )
  await expect.poll(() => states(connectionId)).toEqual(['FAILED'])
  expect(outcome(await vendor.call('DELETE', `templates/${two.id}`))).toBe('204')
  await vendor.call('POST', `commerce/${connectionId}/events/${event!.id}/retry`)
  await settled(connectionId)
  expect(await licenses()).toMatchObject([{ templateId: one.id }])
})
