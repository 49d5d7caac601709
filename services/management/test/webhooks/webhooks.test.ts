/**
 * Tests webhooks (docs/api.md#w3): endpoints, signatures, retries and deliveries. A receiver verifies the signatures with the official
 * library.
 */

import { page } from '@keyward/contract'
import { alert } from '@keyward/contract/management/activity'
import { event } from '@keyward/contract/management/events'
import { createdWebhookEndpoint, delivery, webhookEndpoint } from '@keyward/contract/management/webhooks'
import { createPool } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { createKeyring } from '../../src/keyring/keyring.ts'
import { resealWebhookSecrets } from '../../src/webhooks/secrets.ts'
import { type Harness, masterKey, startHarness } from '../support/harness.ts'
import { LOCAL_WEBHOOKS, type Receiver, startReceiver, verify } from '../support/receiver.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
const receivers: Receiver[] = []

beforeAll(async () => {
  harness = await startHarness(LOCAL_WEBHOOKS)
  vendor = await createVendor(harness)
})
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((one) => one.close()))
})
afterAll(() => harness.close())

const WRONG_SIGNATURE = 'No matching signature found'
const POLL = { timeout: 20_000, interval: 20 }

async function receiver(...respond: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...respond)
  receivers.push(started)
  return started
}

async function endpoint(of: Vendor, url: string, types = ['product.*']) {
  const created = await of.call('POST', 'webhook-endpoints', { body: { url, types } })
  const { secret = '', ...shown } = expectBody(created, 201, createdWebhookEndpoint)
  return { secret, ...shown }
}

const deliveries = async (of: Vendor, id: string, filter = '') =>
  expectBody(await of.call('GET', `webhook-endpoints/${id}/deliveries?limit=100${filter}`), 200, page(delivery)).data
const read = async (of: Vendor, id: string) =>
  expectBody(await of.call('GET', `webhook-endpoints/${id}`), 200, webhookEndpoint)

const alerts = async (of: Vendor) => expectBody(await of.call('GET', 'alerts?open=true'), 200, page(alert)).data

/** Makes the next attempts of an endpoint due at once. */
const hurry = (id: string) =>
  harness.database.pool.query(
    `update webhook_deliveries set next_attempt_at = now() where endpoint_id = $1 and status = 'PENDING' and worker is null`,
    [id],
  )

describe('a delivery', () => {
  test('a delivery contains the event and a signature that the official library accepts', async () => {
    const hook = await receiver()
    const { id, secret } = await endpoint(vendor, hook.url, ['product.*', 'customer.created'])
    const productId = await vendor.product()
    await vendor.customer()
    await vendor.license({ productId })
    await expect.poll(() => hook.received.length, POLL).toBe(3)
    const [first] = hook.received
    const payload = event.parse(verify(secret, first!))
    expect(payload).toEqual(expectBody(await vendor.call('GET', `events/${first?.id}`), 200, event))
    expect(() => verify(`whsec_${Buffer.alloc(32).toString('base64')}`, first!)).toThrow(WRONG_SIGNATURE)
    expect(() => verify(secret, { ...first!, body: `${first?.body} ` })).toThrow(WRONG_SIGNATURE)
    expect(hook.received.map(({ body }) => event.parse(JSON.parse(body)).type).toSorted()).toEqual([
      'customer.created',
      'customer.created',
      'product.created',
    ])
    await expect.poll(async () => (await deliveries(vendor, id, '&status=SUCCEEDED')).length, POLL).toBe(3)
    const [last] = await deliveries(vendor, id)
    expect(last).toMatchObject({ cause: 'EVENT', status: 'SUCCEEDED', nextAttemptAt: null })
    expect(last?.attempts).toMatchObject([{ status: 204, error: null, response: '' }])
  })

  test('a delivery is attempted again with the same id after errors and redirects, which are not followed', async () => {
    const target = await receiver()
    const statuses = [500, 302, 204]
    const hook = await receiver((_, response) => {
      response.writeHead(statuses.shift() ?? 500, { location: target.url }).end('x'.repeat(5_000))
    })
    const { id } = await endpoint(vendor, hook.url)
    await vendor.product()
    for (const attempts of [1, 2]) {
      await expect.poll(async () => (await deliveries(vendor, id))[0]?.attempts.length, POLL).toBe(attempts)
      expect((await read(vendor, id)).failingSince).not.toBeNull()
      await hurry(id)
    }
    await expect.poll(async () => (await deliveries(vendor, id))[0]?.status, POLL).toBe('SUCCEEDED')
    expect(new Set(hook.received.map((one) => one.id)).size).toBe(1)
    expect(new Set(hook.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBeGreaterThan(0)
    expect(target.received).toEqual([])
    const [done] = await deliveries(vendor, id)
    expect(done?.attempts.map(({ status, error }) => `${status} ${error}`)).toEqual([
      '500 The response has the status 500.',
      '302 The response has the status 302. Redirects are not followed.',
      '204 null',
    ])
    expect(done?.attempts[0]?.response).toHaveLength(2_048)
    expect((await read(vendor, id)).failingSince).toBeNull()
  })

  test('a delivery ends after ten attempts', async () => {
    const hook = await receiver((_, response) => void response.writeHead(500).end())
    const { id } = await endpoint(vendor, hook.url)
    await vendor.product()
    await expect
      .poll(async () => {
        await hurry(id)
        return (await deliveries(vendor, id))[0]?.status
      }, POLL)
      .toBe('FAILED')
    const [failed] = await deliveries(vendor, id)
    expect(failed?.attempts).toHaveLength(10)
    expect(failed?.nextAttemptAt).toBeNull()
  })

  test('a delivery waits for Retry-After when the receiver is busy', async () => {
    const hook = await receiver((_, response) => void response.writeHead(429, { 'retry-after': '3600' }).end())
    const { id } = await endpoint(vendor, hook.url)
    await vendor.product()
    await expect.poll(async () => (await deliveries(vendor, id))[0]?.attempts.length, POLL).toBe(1)
    const [waiting] = await deliveries(vendor, id)
    const seconds = (Date.parse(waiting?.nextAttemptAt ?? '') - Date.now()) / 1_000
    expect(seconds).toBeGreaterThan(3_000)
    expect(seconds).toBeLessThan(4_400)
  })

  test('a delivery to a slow endpoint does not delay deliveries to another endpoint of the organization', async () => {
    const own = await createVendor(harness)
    const slow = await receiver(() => undefined)
    const fast = await receiver()
    await endpoint(own, slow.url)
    await endpoint(own, fast.url)
    for (let i = 0; i < 40; i++) await own.product()
    await expect.poll(() => fast.received.length, POLL).toBe(40)
    expect(slow.received.length).toBeLessThanOrEqual(20)
  })
})

describe('an endpoint', () => {
  test('a response with the status 410 disables the endpoint, ends its deliveries and writes an event', async () => {
    const own = await createVendor(harness)
    const hook = await receiver((_, response) => void response.writeHead(410).end())
    const others = await receiver()
    const { id } = await endpoint(own, hook.url)
    await endpoint(own, others.url, ['webhook_endpoint.disabled'])
    await own.product()
    await expect.poll(async () => (await read(own, id)).disabledReason, POLL).toBe('GONE')
    await expect.poll(() => others.received.length, POLL).toBe(1)
    expect(JSON.parse(others.received[0]?.body ?? '')).toMatchObject({ data: { reason: 'GONE', resource: { id } } })
    await expect.poll(async () => (await deliveries(own, id, '&status=PENDING')).length, POLL).toBe(0)
    await own.product()
    expect(await deliveries(own, id)).toHaveLength(1)
    expect(outcome(await own.call('POST', `webhook-endpoints/${id}/test`))).toBe('409 ENDPOINT_DISABLED')
    const [opened, ...more] = await alerts(own)
    expect(more).toEqual([])
    expect(opened).toMatchObject({ kind: 'WEBHOOK_DISABLED', webhookEndpointId: id, licenseId: null, count: 1 })
    const enabled = await own.call('PATCH', `webhook-endpoints/${id}`, { body: { enabled: true } })
    expect(await alerts(own)).toEqual([])
    expect(expectBody(enabled, 200, webhookEndpoint)).toMatchObject({ enabled: true, disabledReason: null })
  })

  test('an endpoint is disabled after five days without success', async () => {
    const own = await createVendor(harness)
    const hook = await receiver((_, response) => void response.writeHead(500).end())
    const { id } = await endpoint(own, hook.url)
    await own.product()
    await expect.poll(async () => (await read(own, id)).failingSince, POLL).not.toBeNull()
    await harness.database.pool.query(
      `update webhook_endpoints set failing_since = now() - interval '119 hours' where id = $1`,
      [id],
    )
    await hurry(id)
    await expect.poll(async () => (await deliveries(own, id))[0]?.attempts.length, POLL).toBe(2)
    expect((await read(own, id)).enabled).toBe(true)
    await harness.database.pool.query(
      `update webhook_endpoints set failing_since = now() - interval '121 hours' where id = $1`,
      [id],
    )
    await hurry(id)
    await expect.poll(async () => (await read(own, id)).disabledReason, POLL).toBe('FAILING')
    const [opened] = await alerts(own)
    expect(opened).toMatchObject({ kind: 'WEBHOOK_DISABLED', webhookEndpointId: id, acknowledgedAt: null })
    const acknowledged = await own.call('POST', `alerts/${opened?.id}/acknowledge`)
    expect(expectBody(acknowledged, 200, alert).acknowledgedAt).not.toBeNull()
    expect((await own.call('DELETE', `webhook-endpoints/${id}`)).status).toBe(204)
    expect(expectBody(await own.call('GET', 'alerts'), 200, page(alert)).data).toEqual([])
  })

  test('deliveries are signed with both secrets after a rotation, and each secret is returned only once', async () => {
    const hook = await receiver()
    const { id, secret, ...shown } = await endpoint(vendor, hook.url)
    expect(await read(vendor, id)).toEqual({ id, ...shown })
    const options = { headers: { 'idempotency-key': `rotation-of-${id}` } }
    const rotated = await vendor.call('POST', `webhook-endpoints/${id}/rotate-secret`, options)
    const { secret: second = '' } = expectBody(rotated, 200, createdWebhookEndpoint)
    expect(second).not.toBe(secret)
    const repeated = await vendor.call('POST', `webhook-endpoints/${id}/rotate-secret`, options)
    expect(expectBody(repeated, 200, createdWebhookEndpoint).secret).toBeUndefined()
    await vendor.product()
    await expect.poll(() => hook.received.length, POLL).toBe(1)
    const [both] = hook.received
    expect(verify(secret, both!)).toEqual(verify(second, both!))
    await harness.database.pool.query(
      `update webhook_endpoints set previous_until = now() - interval '1 second' where id = $1`,
      [id],
    )
    await vendor.product()
    await expect.poll(() => hook.received.length, POLL).toBe(2)
    expect(() => verify(secret, hook.received[1]!)).toThrow(WRONG_SIGNATURE)
    verify(second, hook.received[1]!)
    const { rows } = await harness.database.pool.query<{ text: string }>(
      `select (select jsonb_agg(a)::text from audit_log a) || (select jsonb_agg(i)::text from idempotency_keys i) as text`,
    )
    expect(rows[0]?.text).not.toContain('whsec_')
  })

  test('an endpoint keeps its secret when the master key is replaced', async () => {
    const hook = await receiver()
    const { secret } = await endpoint(vendor, hook.url)
    const [old, next] = [Buffer.from(masterKey, 'hex'), Buffer.alloc(32, 7)]
    const pool = createPool(harness.database.managementUrl, { name: 'reseal', max: 1 })
    const db = createDatabase(pool)
    expect(await resealWebhookSecrets(db, createKeyring(next, old))).toBeGreaterThan(0)
    expect(await resealWebhookSecrets(db, createKeyring(old, next))).toBeGreaterThan(0)
    await pool.end()
    await vendor.product()
    await expect.poll(() => hook.received.length, POLL).toBe(1)
    verify(secret, hook.received[0]!)
  })

  test.each<[object, string]>([
    [{ url: 'ftp://hooks.example.com', types: ['*'] }, '#/url'],
    [{ url: 'https://user:password@hooks.example.com', types: ['*'] }, '#/url'],
    [{ url: 'https://hooks.example.com/#x', types: ['*'] }, '#/url'],
    [{ url: 'https://10.0.0.1/', types: ['*'] }, '#/url'],
    [{ url: 'https://hooks.example.com/', types: ['licence.*'] }, '#/types/0'],
    [{ url: 'https://hooks.example.com/', types: [] }, '#/types'],
    [{ url: 'https://hooks.example.com/', types: ['ping', 7] }, '#/types/1'],
    [{ url: 7, types: ['*'] }, '#/url'],
    [{ url: 'https://hooks.example.com/', types: ['*'], secret: 'whsec_x' }, '#'],
  ])('no endpoint is created from %j', async (body, pointer) => {
    const response = await vendor.call('POST', 'webhook-endpoints', { body })
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(response.text).toContain(`"${pointer}`)
  })

  test('other organizations find neither an endpoint nor its deliveries', async () => {
    const other = await createVendor(harness)
    const { id } = await endpoint(other, 'http://127.0.0.1:9/')
    const tested = await other.call('POST', `webhook-endpoints/${id}/test`)
    const deliveryId = expectBody(tested, 201, delivery).id
    const mine = await endpoint(vendor, 'http://127.0.0.1:9/')
    for (const [method, path] of [
      ['GET', id],
      ['PATCH', id],
      ['DELETE', id],
      ['GET', `${id}/deliveries`],
      ['POST', `${id}/test`],
      ['POST', `${id}/rotate-secret`],
      ['POST', `${id}/deliveries/${deliveryId}/resend`],
      ['POST', `${mine.id}/deliveries/${deliveryId}/resend`],
    ] as const) {
      const body = method === 'PATCH' ? { body: { enabled: false } } : {}
      expect((await vendor.call(method, `webhook-endpoints/${path}`, body)).status, path).toBe(404)
    }
  })
})

describe('an event is sent', () => {
  test('sends the event of a delivery again, or the events of a period that match the types of the endpoint', async () => {
    const own = await createVendor(harness)
    const hook = await receiver()
    const { id } = await endpoint(own, hook.url)
    const from = new Date(Date.now() - 60_000).toISOString()
    for (let i = 0; i < 3; i++) await own.product()
    await own.customer()
    await expect.poll(async () => (await deliveries(own, id, '&status=SUCCEEDED')).length, POLL).toBe(3)
    const [first] = await deliveries(own, id)
    const again = await own.call('POST', `webhook-endpoints/${id}/deliveries/${first?.id}/resend`)
    expect(expectBody(again, 201, delivery)).toMatchObject({
      cause: 'RESEND',
      eventId: first?.eventId,
      status: 'PENDING',
    })
    await expect.poll(() => hook.received.length, POLL).toBe(4)
    const replayed = await own.call('POST', `webhook-endpoints/${id}/replay`, { body: { from } })
    expect(replayed.body).toEqual({ deliveries: 3 })
    await expect.poll(() => hook.received.length, POLL).toBe(7)
    expect(new Set(hook.received.map((one) => one.id)).size).toBe(3)
    const none = await own.call('POST', `webhook-endpoints/${id}/replay`, { body: { from, types: ['customer.*'] } })
    expect(none.body).toEqual({ deliveries: 0 })
    const reversed = await own.call('POST', `webhook-endpoints/${id}/replay`, {
      body: { from, to: '2020-01-01T00:00:00Z' },
    })
    expect(outcome(reversed)).toBe('422 INVALID_REQUEST')
  })

  test('sends a ping only to the tested endpoint', async () => {
    const own = await createVendor(harness)
    const one = await receiver()
    const two = await receiver()
    const { id, secret } = await endpoint(own, one.url, ['license.created'])
    await endpoint(own, two.url, ['*'])
    const sent = expectBody(await own.call('POST', `webhook-endpoints/${id}/test`), 201, delivery)
    await expect.poll(() => one.received.length, POLL).toBe(1)
    expect(verify(secret, one.received[0]!)).toMatchObject({
      id: sent.eventId,
      type: 'ping',
      data: { resource: { id } },
    })
    expect(two.received).toEqual([])
  })
})

test('a transaction that is rolled back delivers nothing', async () => {
  const own = await createVendor(harness)
  const { id } = await endpoint(own, 'http://127.0.0.1:9/', ['*'])
  const license = await own.license()
  const before = (await deliveries(own, id)).length
  await Promise.all(Array.from({ length: 30 }, () => own.call('DELETE', `products/${license.productId}`)))
  expect(await deliveries(own, id)).toHaveLength(before)
  expect(before).toBe(3)
})
