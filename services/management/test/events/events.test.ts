/** Tests the events that changes and validators cause (docs/api.md#w1), and the list of events (docs/api.md#w2). */

import { createdToken, page } from '@keyward/contract'
import { EVENT_TYPES, type Event, event, type EventType, eventTypes } from '@keyward/contract/management/events'
import { uuidv7 } from '@keyward/database'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { endpoints } from '../../src/endpoints.ts'
import { dataOf } from '../../src/events/writer.ts'
import { isRead, permissionOf } from '../../src/operations/implement.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { NO_MAIL_SERVER } from '../support/mail-server.ts'
import { insertMachine, isOfPerson, validRequest } from '../support/requests.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness(NO_MAIL_SERVER)
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const query = (text: string, values: unknown[] = []) => harness.database.pool.query(text, values)

async function events(of: Vendor, filter = ''): Promise<Event[]> {
  return expectBody(await of.call('GET', `events?limit=100${filter}`), 200, page(event)).data
}
const types = (list: readonly Event[]) => list.map(({ type }) => type).toReversed()

/** Waits until the jobs of the service have written this number of events of a type. */
async function eventually(of: Vendor, type: EventType, count: number): Promise<Event[]> {
  let found: Event[] = []
  await expect.poll(async () => (found = await events(of, `&type=${type}`)).length, { timeout: 15_000 }).toBe(count)
  return found
}

/** The types of events that no request of this test causes. Other tests cover them. */
const BY_TIME_OR_CHECKS: ReadonlySet<EventType> = new Set<EventType>([
  'license.started',
  'license.expiring',
  'license.expired',
  'license.grace_ended',
  'license.first_used',
  'license.limit_exceeded',
  'license.blacklisted',
  'machine.activated',
  'access_rule.expired',
  'api_key.expiring',
  'token.expiring',
  'quota.reached',
  'webhook_endpoint.disabled',
])

test('every change of a resource writes an event that conforms to its schema', async () => {
  const own = await createVendor(harness)
  for (const one of endpoints) {
    if (permissionOf(one.operation) === null || isOfPerson(one) || isRead(one)) continue
    const { path, body } = await validRequest(one.name, { harness, vendor: own })
    await own.call(one.method, path, body && { body })
  }
  const { id } = await own.license({ policy: { type: 'SUBSCRIPTION', expiresAt: '2040-01-01T00:00:00Z' } })
  await own.call('POST', `licenses/${id}/suspend`)
  await own.call('POST', `licenses/${id}/reinstate`)
  const { rows } = await harness.database.pool.query<{ type: EventType; data: object }>(
    'select type, data from events where organization_id = $1',
    [own.id],
  )
  for (const { type, data } of rows) expect({ type, data: eventTypes[type].data.parse(data) }).toEqual({ type, data })
  const written = new Set(rows.map(({ type }) => type))
  expect(EVENT_TYPES.filter((type) => !written.has(type) && !BY_TIME_OR_CHECKS.has(type))).toEqual([])
  expect(JSON.stringify(rows)).not.toMatch(/kw[mkpi]_[0-9A-Za-z]{10}/)
})

describe('the events of a change', () => {
  test('an event contains the resource, its former values and the actor', async () => {
    const license = await vendor.license({ metadata: { order: 'A-1' } })
    await vendor.call('PATCH', `licenses/${license.id}`, { body: { policy: { maxMachines: 9 }, metadata: {} } })
    const [updated] = await events(vendor, `&resourceId=${license.id}`)
    expect(updated).toMatchObject({
      type: 'license.updated',
      organizationId: vendor.id,
      data: {
        resource: { id: license.id, policy: { maxMachines: 9 }, metadata: {} },
        previous: { policy: license.policy, metadata: { order: 'A-1' }, machines: { used: 0, max: 5 } },
        actor: { type: 'MANAGEMENT_TOKEN' },
      },
    })
    expect(Object.keys(updated?.data['previous'] ?? {}).toSorted()).toEqual(['machines', 'metadata', 'policy'])
    expect(expectBody(await vendor.call('GET', `events/${updated?.id}`), 200, event)).toEqual(updated)
  })

  test('writes no event for a request that changes nothing or fails', async () => {
    const own = await createVendor(harness)
    const license = await own.license()
    const before = await events(own)
    await own.call('PATCH', `licenses/${license.id}`, { body: { policy: { maxMachines: 5 } } })
    await own.call('POST', `licenses/${license.id}/reinstate`)
    await own.call('DELETE', `products/${license.productId}`)
    await own.call('POST', 'licenses', {
      body: { productId: license.productId, customerId: license.customerId, policy: license.policy, key: license.key },
      headers: { 'idempotency-key': 'the same' },
    })
    await own.call('POST', 'access-rules/import', {
      body: { rules: [{ kind: 'BLACKLIST', type: 'IP', value: 'x', scope: 'ORGANIZATION' }] },
    })
    expect(await events(own)).toEqual(before)
  })

  test('writes one event for each committed change when many requests run at once', async () => {
    const own = await createVendor(harness)
    const productId = await own.product()
    const customerId = await own.customer()
    const keys = Array.from({ length: 120 }, (_, i) => `key ${i % 80}`)
    const responses = await Promise.all(
      keys.map((key) =>
        own.call('POST', 'licenses', { body: { productId, customerId, policy: { type: 'PERPETUAL' }, key } }),
      ),
    )
    const created = responses.filter(({ status }) => status === 201)
    expect(created).toHaveLength(80)
    expect(await events(own, '&type=license.created')).toHaveLength(80)
  })

  test('writes one event for an import of rules, and one for each imported license', async () => {
    const own = await createVendor(harness)
    const rules = Array.from({ length: 150 }, (_, i) => ({
      kind: 'BLACKLIST',
      type: 'HWID',
      value: `machine ${i}`,
      scope: 'ORGANIZATION',
    }))
    await own.call('POST', 'access-rules/import', { body: { rules } })
    const [imported, ...others] = await events(own, '&type=access_rules.*')
    expect(others).toEqual([])
    expect(imported?.data).toMatchObject({ created: 150, skipped: 0 })
    expect(imported?.data['ruleIds']).toHaveLength(100)
    const row = { productId: await own.product(), customerId: await own.customer(), policy: { type: 'PERPETUAL' } }
    await own.call('POST', 'licenses/import', { body: { licenses: Array.from({ length: 60 }, () => row) } })
    expect(await events(own, '&type=license.created')).toHaveLength(60)
  })

  test('an event omits metadata that would make it longer than 20 kB', async () => {
    const own = await createVendor(harness)
    const metadata = { note: 'ä'.repeat(16_000) }
    const id = await own.product()
    await own.call('PATCH', `products/${id}`, { body: { metadata } })
    await own.call('PATCH', `products/${id}`, { body: { metadata: { note: 'x'.repeat(16_000) } } })
    const [second, first] = await events(own, `&resourceId=${id}&type=product.updated`)
    expect(first?.data['omitted']).toEqual(['resource.metadata'])
    expect(second?.data['omitted']).toEqual(['previous.metadata'])
    const organizationId = own.id
    const actor = { type: 'MANAGEMENT_TOKEN', id: uuidv7(), name: '\u0001'.repeat(200) } as const
    const name = '\u0001'.repeat(200)
    const huge = { id, name, metadata, entitlements: { a: '\u0001'.repeat(600) } }
    const text = dataOf({
      type: 'product.updated',
      resource: huge,
      before: { ...huge, metadata: {} },
      organizationId,
      actor,
    })
    expect(Buffer.byteLength(text)).toBeLessThan(19_501)
  })
})

describe('the events of validators', () => {
  const claim = (licenseId: string, machineId: string) =>
    query(`select * from claim_slots($1, $2, '{build}', true, '{terms,leases}')`, [
      [licenseId],
      [Buffer.from(machineId)],
    ])

  test('writes an event when a machine is activated, and one with the reason when it is released', async () => {
    const own = await createVendor(harness)
    const { id } = await own.license({ policy: { type: 'PERPETUAL', maxMachines: 3, leaseSeconds: 60 } })
    await claim(id, 'one')
    await claim(id, 'two')
    await claim(id, 'three')
    const activated = await eventually(own, 'machine.activated', 3)
    expect(activated[0]?.data).toMatchObject({
      licenseId: id,
      resource: { machineId: 'three', hostname: 'build' },
      actor: { type: 'SYSTEM' },
    })
    expect(await events(own, '&type=license.first_used')).toHaveLength(1)
    await query('select * from release_slots($1, $2)', [[id], [Buffer.from('one')]])
    const { rows } = await harness.database.pool.query<{ id: string }>(
      `select id from machines where license_id = $1 and machine_id = 'two'`,
      [id],
    )
    await own.call('DELETE', `licenses/${id}/machines/${rows[0]?.id}`)
    await query(`update machines set lease_ends_at = now() - interval '1 second' where license_id = $1`, [id])
    await claim(id, 'four')
    const released = await eventually(own, 'machine.released', 3)
    const reasons = released.map(({ data }) => `${JSON.stringify(data['reason'])} ${JSON.stringify(data['resource'])}`)
    expect(reasons.toSorted()).toEqual([
      expect.stringMatching(/^"APP" .*"machineId":"one"/),
      expect.stringMatching(/^"LEASE_ENDED" .*"machineId":"three"/),
      expect.stringMatching(/^"VENDOR" .*"machineId":"two"/),
    ])
    for (const { data } of released) expect(eventTypes['machine.released'].data.parse(data)).toEqual(data)
    for (const { data } of activated) expect(eventTypes['machine.activated'].data.parse(data)).toEqual(data)
    expect(await events(own, '&type=license.first_used')).toHaveLength(1)
  })

  test('writes an event for each machine that a statement changes, with the time of the change', async () => {
    const own = await createVendor(harness)
    const { id } = await own.license({ policy: { type: 'PERPETUAL', maxMachines: 500, leaseSeconds: 60 } })
    const machines = Array.from({ length: 240 }, (_, i) => Buffer.from(`machine ${i}`))
    await query(`select * from claim_slots($1, $2, array_fill(null::text, array[240]), true, '{terms,leases}')`, [
      machines.map(() => id),
      machines,
    ])
    await query(`update machines set lease_ends_at = now() - interval '1 second' where license_id = $1`, [id])
    await claim(id, 'another')
    const count = async (type: EventType) => {
      const { rows } = await harness.database.pool.query<{ machines: number; times: number }>(
        `select count(distinct data -> 'resource' ->> 'machineId')::integer as machines, count(distinct left(id::text, 13))::integer as times
         from events where organization_id = $1 and type = $2`,
        [own.id, type],
      )
      return rows[0]
    }
    await expect.poll(() => count('machine.released'), { timeout: 15_000 }).toMatchObject({ machines: 240 })
    expect(await count('machine.activated')).toEqual({ machines: 241, times: 2 })
    expect(await events(own, '&type=license.first_used')).toHaveLength(1)
  })

  test('writes events about the start of a term and the first use of a license', async () => {
    const own = await createVendor(harness)
    const { id } = await own.license({ policy: { type: 'TRIAL', durationDays: 14, maxMachines: 1 } })
    await claim(id, 'one')
    const [started] = await eventually(own, 'license.started', 1)
    expect(started?.data).toMatchObject({ resource: { id, policy: { durationDays: 14 } } })
    await eventually(own, 'license.first_used', 1)
  })

  test('writes an event about an exceeded limit when the alert opens, then once an hour', async () => {
    const own = await createVendor(harness)
    const { id } = await own.license()
    let flush = 0
    const validator = uuidv7()
    const exceed = () =>
      query(`select write_usage($1, $2, '[]', '[]', $3, '[]', '[]', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')`, [
        validator,
        ++flush,
        JSON.stringify([{ license: id, count: 2, first: Date.now(), last: Date.now() }]),
      ])
    await exceed()
    await exceed()
    const [first] = await eventually(own, 'license.limit_exceeded', 1)
    expect(first?.data).toMatchObject({ resource: { id }, alert: { count: 2 } })
    await query(`update alerts set noted_at = now() - interval '61 minutes' where license_id = $1`, [id])
    await exceed()
    await exceed()
    const [second] = await eventually(own, 'license.limit_exceeded', 2)
    expect(second?.data).toMatchObject({ alert: { count: 6 } })
  })

  test('writes no event about a deleted license, and deletes its occurrences', async () => {
    const own = await createVendor(harness)
    const license = await own.license()
    await insertMachine({ harness, vendor: own }, license.id, 'm')
    await own.call('DELETE', `licenses/${license.id}`)
    await expect.poll(async () => (await query('select from occurrences')).rowCount, { timeout: 15_000 }).toBe(0)
    expect(types(await events(own, '&type=machine.*'))).toEqual([])
  })
})

describe('GET /events', () => {
  test('lists events by type, group, resource and time, newest first', async () => {
    const own = await createVendor(harness)
    const first = await own.product()
    const split = new Date(Date.now() + 1)
    await new Promise((resolve) => setTimeout(resolve, 5))
    const second = await own.product()
    expect((await events(own, `&type=product.*&from=${split.toISOString()}`)).map((one) => one.data)).toMatchObject([
      { resource: { id: second } },
    ])
    expect((await events(own, `&type=product.created&to=${split.toISOString()}`)).map((one) => one.data)).toMatchObject(
      [{ resource: { id: first } }],
    )
    expect(types(await events(own, `&resourceId=${first}`))).toEqual(['product.created'])
    const one = expectBody(await own.call('GET', 'events?limit=1'), 200, page(event))
    const two = expectBody(await own.call('GET', `events?limit=1&cursor=${one.nextCursor}`), 200, page(event))
    expect([...one.data, ...two.data].map(({ data }) => data)).toMatchObject([
      { resource: { id: second } },
      { resource: { id: first } },
    ])
  })

  test('returns no event of another organization', async () => {
    const other = await createVendor(harness)
    const id = (await events(other))[0]?.id
    expect((await vendor.call('GET', `events/${id}`)).status).toBe(404)
    expect((await events(vendor)).every(({ organizationId }) => organizationId === vendor.id)).toBe(true)
    const cursor = expectBody(await other.call('GET', 'events?limit=1'), 200, page(event)).nextCursor
    expect((await vendor.call('GET', `events?cursor=${cursor}`)).status).toBe(422)
  })

  test.each(['&type=licence.created', '&type=*', '&type=license.', '&from=yesterday', '&resourceId=7', '&kind=x'])(
    'returns 422 for %s',
    async (filter) => {
      expect((await vendor.call('GET', `events?limit=10${filter}`)).status).toBe(422)
    },
  )

  test('the list of events requires the permission webhooks.read', async () => {
    const response = await vendor.call('POST', 'tokens', { body: { name: 't', permissions: ['licenses.read'] } })
    const secret = expectBody(response, 201, createdToken).secret ?? ''
    expect((await harness.as(secret)('GET', 'events')).status).toBe(403)
  })
})
