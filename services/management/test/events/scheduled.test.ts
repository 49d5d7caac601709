/** Tests that several processes write each event about expiries, quotas and blacklisted checks exactly once (docs/api.md#w1). */

import { page } from '@keyward/contract'
import { type Event, event, eventTypes } from '@keyward/contract/management/events'
import { createdWebhookEndpoint } from '@keyward/contract/management/webhooks'
import { createPool, uuidv7 } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { random } from '@keyward/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { writeBlacklistedEvents } from '../../src/jobs/blacklisted.ts'
import { writeDueEvents } from '../../src/jobs/expiries.ts'
import { writeQuotaEvents } from '../../src/jobs/quota-levels.ts'
import { applyRetention } from '../../src/retention/retention.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

const MS_PER_DAY = 86_400_000
const isLong = Boolean(process.env['KEYWARD_LONG'])

let harness: Harness
/** The connections of three processes, with the login of the service. */
let pools: pg.Pool[]

beforeAll(async () => {
  harness = await startHarness()
  pools = Array.from({ length: 3 }, () => createPool(harness.database.managementUrl, { name: 'scheduler', max: 1 }))
})
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()))
  await harness.close()
})

async function events(vendor: Vendor, type: string): Promise<Event[]> {
  return expectBody(await vendor.call('GET', `events?limit=100&type=${type}`), 200, page(event)).data
}

/** Runs the scheduler on three connections at once, as three processes would. */
const startAt = (now: Date) => pools.map((pool) => writeDueEvents(createDatabase(pool), now))
const runAt = (now: Date) => Promise.all(startAt(now))

test('writes each event about an expiry once, even when processes are killed', async () => {
  const vendor = await createVendor(harness)
  const { next } = random(19)
  const startMs = Date.now()
  const licenses = isLong ? 2_000 : 12
  const expiries = Array.from({ length: licenses }, (_, i) => (i % 4 === 0 ? 40 : 2 + (i % 12) * 3) + next() / 2)
  const row = { productId: await vendor.product(), customerId: await vendor.customer() }
  const imported = expiries.map((days) => {
    const expiresAt = new Date(startMs + days * MS_PER_DAY).toISOString()
    return { ...row, policy: { type: 'SUBSCRIPTION', expiresAt } }
  })
  for (let i = 0; i < licenses; i += 500) {
    const response = await vendor.call('POST', 'licenses/import', { body: { licenses: imported.slice(i, i + 500) } })
    expect(response.status).toBe(200)
  }
  const rule = await vendor.rule({ expiresAt: new Date(startMs + 5 * MS_PER_DAY).toISOString() })
  let killed = 0
  for (let day = 0; day <= 45; day += (2 + 4 * next()) / (isLong ? 20 : 1)) {
    const running = Promise.allSettled(startAt(new Date(startMs + day * MS_PER_DAY)))
    // A process that is killed loses its connection in the middle of a transaction.
    if (next() < 0.3) {
      const { rowCount } = await harness.database.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and state <> 'idle' and application_name = 'scheduler'`,
      )
      killed += rowCount ?? 0
    }
    await running
  }
  await runAt(new Date(startMs + 45 * MS_PER_DAY))
  const { rows } = await harness.database.pool.query<{ name: string; events: number; resources: number }>(
    `select concat_ws(' ', type, data ->> 'days') as name, count(*)::integer as events, count(distinct resource_id)::integer as resources
     from events where organization_id = $1 and type in ('license.expiring', 'license.expired', 'access_rule.expired') group by 1 order by 1`,
    [vendor.id],
  )
  const written = (name: string, count: number) => ({ name, events: count, resources: count })
  const expiring = (days: number) =>
    written(`license.expiring ${days}`, expiries.filter((expiry) => expiry > days).length)
  expect(rows).toEqual([
    written('access_rule.expired', 1),
    written('license.expired', licenses),
    expiring(1),
    expiring(30),
    expiring(7),
  ])
  expect((await events(vendor, 'access_rule.expired')).map(({ data }) => data)).toMatchObject([
    { resource: { id: rule.id } },
  ])
  if (isLong) console.log(`${licenses} licenses, ${killed} killed connections: ${JSON.stringify(rows)}`)
})

test('writes the events about a renewed license again, and none about a revoked license', async () => {
  const vendor = await createVendor(harness)
  const { rows } = await harness.database.pool.query<{ until: Date }>('select max(until) as until from event_schedules')
  const startMs = rows[0]?.until.getTime() ?? 0
  const at = (days: number) => new Date(startMs + days * MS_PER_DAY)
  const policy = { type: 'SUBSCRIPTION', expiresAt: at(10).toISOString() }
  const renewed = await vendor.license({ policy })
  const revoked = await vendor.license({ policy })
  await vendor.call('POST', `licenses/${revoked.id}/revoke`)
  await runAt(at(3.5))
  await vendor.call('POST', `licenses/${renewed.id}/renew`, { body: { expiresAt: at(20).toISOString() } })
  await runAt(at(10.5))
  expect(await events(vendor, 'license.expired')).toEqual([])
  await runAt(at(20.5))
  const all = [...(await events(vendor, 'license.expiring')), ...(await events(vendor, 'license.expired'))]
  // The last run writes two of the events in one statement, so their ids have no order.
  expect(all.map(({ type, data }) => `${type} ${JSON.stringify(data['days'])}`).toSorted()).toEqual([
    'license.expired undefined',
    'license.expiring 1',
    'license.expiring 7',
    'license.expiring 7',
  ])
  expect(JSON.stringify(all)).not.toContain(revoked.id)
})

test('writes an event at the end of a grace period, once', async () => {
  const vendor = await createVendor(harness)
  const { rows } = await harness.database.pool.query<{ until: Date }>('select max(until) as until from event_schedules')
  const startMs = rows[0]?.until.getTime() ?? 0
  const at = (days: number) => new Date(startMs + days * MS_PER_DAY)
  const policy = { type: 'SUBSCRIPTION', expiresAt: at(2).toISOString(), graceDays: 5 }
  const { id } = await vendor.license({ policy })
  const revoked = await vendor.license({ policy })
  await vendor.license({ policy: { ...policy, graceDays: 0 } })
  await vendor.call('POST', `licenses/${revoked.id}/revoke`)
  await runAt(at(6.9))
  expect(await events(vendor, 'license.grace_ended')).toEqual([])
  expect(await events(vendor, 'license.expired')).toHaveLength(2)
  await runAt(at(7.1))
  await runAt(at(7.2))
  expect(await events(vendor, 'license.grace_ended')).toMatchObject([{ data: { resource: { id } } }])
})

test('writes an event 14 days before an API key or a token expires, once', async () => {
  const vendor = await createVendor(harness)
  await runAt(new Date())
  const { rows } = await harness.database.pool.query<{ until: Date }>('select max(until) as until from event_schedules')
  const startMs = rows[0]?.until.getTime() ?? 0
  const at = (days: number) => new Date(startMs + days * MS_PER_DAY)
  const create = async (path: string, expiresAt: Date | null, more: object = {}) => {
    const body = { name: path, expiresAt: expiresAt?.toISOString() ?? null, ...more }
    return expectBody(await vendor.call('POST', path, { body }), 201, z.object({ id: z.uuid() })).id
  }
  const key = await create('api-keys', at(20))
  const token = await create('tokens', at(20), { permissions: ['licenses.read'] })
  const revoked = await create('api-keys', at(20))
  await vendor.call('DELETE', `api-keys/${revoked}`)
  await create('api-keys', at(10))
  await create('api-keys', null)
  await runAt(at(5.9))
  expect(await events(vendor, 'api_key.expiring')).toEqual([])
  await runAt(at(6.1))
  await runAt(at(6.2))
  expect(await events(vendor, 'api_key.expiring')).toMatchObject([{ data: { resource: { id: key } } }])
  const [expiring, ...more] = await events(vendor, 'token.expiring')
  expect(more).toEqual([])
  expect(eventTypes['token.expiring'].data.parse(expiring?.data)).toMatchObject({
    resource: { id: token },
    memberId: null,
  })
})

test('writes an event when the use of a quota reaches 80 % and 100 %, and again after it has fallen', async () => {
  const vendor = await createVendor(harness)
  await harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: { products: 5 } } })
  const reached = async () => {
    await Promise.all(pools.map((pool) => writeQuotaEvents(createDatabase(pool))))
    // The job of the service may hold the lock during the first attempts.
    await writeQuotaEvents(createDatabase(pools[0]!))
    return (await events(vendor, 'quota.reached')).map(({ data }) => JSON.stringify([data['percent'], data['used']]))
  }
  const ids = [await vendor.product(), await vendor.product(), await vendor.product()]
  expect(await reached()).toEqual([])
  await vendor.product()
  expect(await reached()).toEqual(['[80,4]'])
  await vendor.product()
  expect(await reached()).toEqual(['[100,5]', '[80,4]'])
  for (const id of ids) await vendor.call('DELETE', `products/${id}`)
  expect(await reached()).toHaveLength(2)
  await vendor.product()
  await vendor.product()
  expect(await reached()).toEqual(['[80,4]', '[100,5]', '[80,4]'])
})

describe('blacklisted checks', () => {
  let flush = 0
  const validator = uuidv7()
  const query = (text: string, values: unknown[] = []) => harness.database.pool.query(text, values)

  /** Writes the usage of a validator: three rejected checks of each license, in two entries. */
  async function reject(licenseIds: readonly string[], code = 'BLACKLISTED'): Promise<void> {
    const ids = licenseIds.flatMap((id) => [id, id])
    const column = <Value>(value: (i: number) => Value): Value[] => ids.map((_, i) => value(i))
    await query(`select write_usage($1, $2, '[]', '[]', '[]', '[]', '[]', $3, $4, $5, $6, $7, $8, $8, $9)`, [
      validator,
      ++flush,
      column(() => Date.now() - (Date.now() % 60_000)),
      ids,
      column(() => code),
      column((i) => (i % 2 === 0 ? null : Buffer.from('m'))),
      column((i) => 1 + (i % 2)),
      column(() => Date.now()),
      column(() => false),
    ])
  }
  const waiting = async (vendor: Vendor) =>
    (await query('select from blacklisted_checks where organization_id = $1', [vendor.id])).rowCount
  /** Makes the rows due, and writes their events over three connections at once. */
  async function writeDue(): Promise<void> {
    await query(`update blacklisted_checks set since = now() - interval '1 minute'`)
    await Promise.all(pools.map((pool) => writeBlacklistedEvents(createDatabase(pool))))
  }
  const listen = (vendor: Vendor, types: readonly string[]) =>
    vendor.call('POST', 'webhook-endpoints', { body: { url: 'https://receiver.invalid/', types } })
  const delivered = async (vendor: Vendor) =>
    (
      await query(`select from webhook_deliveries where organization_id = $1 and event_type = 'license.blacklisted'`, [
        vendor.id,
      ])
    ).rowCount

  test('writes one event per minute for the blacklisted checks of a license', async () => {
    const vendor = await createVendor(harness)
    const { id } = await vendor.license()
    const deleted = await vendor.license()
    for (const types of [['license.blacklisted', 'product.*'], ['*'], ['license.*']]) await listen(vendor, types)
    await reject([id, deleted.id])
    await reject([id])
    await reject([id], 'SUSPENDED')
    await Promise.all(pools.map((pool) => writeBlacklistedEvents(createDatabase(pool))))
    expect(await events(vendor, 'license.blacklisted')).toEqual([])
    await vendor.call('DELETE', `licenses/${deleted.id}`)
    await writeDue()
    const [written, ...others] = await events(vendor, 'license.blacklisted')
    expect(others).toEqual([])
    expect(written?.data).toMatchObject({ resource: { id }, checks: { count: 6 }, actor: { type: 'SYSTEM' } })
    expect(eventTypes['license.blacklisted'].data.parse(written?.data)).toEqual(written?.data)
    expect(await delivered(vendor)).toBe(1)
    expect(await waiting(vendor)).toBe(0)
    await reject([id])
    await writeDue()
    expect(await events(vendor, 'license.blacklisted')).toHaveLength(2)
  })

  test('writes no event about blacklisted checks unless an enabled endpoint lists its type', async () => {
    const vendor = await createVendor(harness)
    const { id } = await vendor.license()
    await listen(vendor, ['*', 'license.*'])
    await reject([id])
    expect(await waiting(vendor)).toBe(0)
    const { id: endpointId } = expectBody(await listen(vendor, ['license.blacklisted']), 201, createdWebhookEndpoint)
    await vendor.call('PATCH', `webhook-endpoints/${endpointId}`, { body: { enabled: false } })
    await reject([id])
    expect(await waiting(vendor)).toBe(0)
  })

  test('writes events about the blacklisted checks of at most 100 licenses of an organization at once', async () => {
    const [flooded, quiet] = [await createVendor(harness), await createVendor(harness)]
    for (const vendor of [flooded, quiet]) await listen(vendor, ['license.blacklisted'])
    const row = {
      productId: await flooded.product(),
      customerId: await flooded.customer(),
      policy: { type: 'PERPETUAL' },
    }
    await flooded.call('POST', 'licenses/import', { body: { licenses: Array.from({ length: 130 }, () => row) } })
    const { rows } = await harness.database.pool.query<{ id: string }>(
      'select id from licenses where organization_id = $1',
      [flooded.id],
    )
    const ids = rows.map(({ id }) => id)
    await reject(ids.slice(0, 60))
    await reject([...ids, (await quiet.license()).id])
    expect([await waiting(flooded), await waiting(quiet)]).toEqual([100, 1])
    await writeDue()
    const counts = (await events(flooded, 'license.blacklisted')).map(({ data }) =>
      JSON.stringify(data['checks']).slice(0, 10),
    )
    expect(counts.filter((count) => count === '{"count":6')).toHaveLength(60)
    expect(counts).toHaveLength(100)
  })
})

test('deletes events after 30 days, and the oldest events of an organization with too many', async () => {
  const vendor = await createVendor(harness)
  for (let i = 0; i < 12; i++) await vendor.product(`product ${i}`)
  const newest = (await events(vendor, 'product.created')).slice(0, 5)
  await harness.database.pool.query(
    `insert into events (id, organization_id, type, data)
     select (lpad(to_hex((extract(epoch from now() - i * interval '1 day' - interval '1 minute') * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid,
       $1, 'product.created', '{}' from generate_series(25, 34) i`,
    [vendor.id],
  )
  const db = createDatabase(pools[0]!)
  const days = { expiredRules: 30, revokedCredentials: 30, acknowledgedAlerts: 90, audit: 400, mergedCustomers: 400 }
  expect(await applyRetention(db, { days })).toMatchObject({ events: 5 })
  const all = async () => Number((await harness.database.pool.query('select from events')).rowCount)
  const before = await all()
  expect(before).toBeGreaterThan(10)
  await applyRetention(db, { days, maxEvents: 5, batchRows: 20 })
  expect(await events(vendor, 'product.created')).toEqual(newest)
  expect(await all()).toBeLessThan(before)
})
