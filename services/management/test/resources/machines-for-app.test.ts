/** Tests the list of a license's machines for its app (docs/api.md#u1). */

import { createdApiKey, licenseMachines } from '@keyward/contract'
import { insertMachine } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const request = (body: object, token = vendor.apiKey) => harness.call('POST', 'machines', { token, body })
const list = async (body: object) => expectBody(await request(body), 200, licenseMachines)

const license = (policy: object = {}) =>
  vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 3, maxReleases: 2, ...policy } })

async function machine(licenseId: string, machineId: string, seen: string, hostname?: string): Promise<string> {
  const { pool } = harness.database
  const id = await insertMachine(pool, { licenseId, machineId, ...(hostname !== undefined && { hostname }) })
  await pool.query('update machines set last_seen_at = $2 where id = $1', [id, seen])
  return id
}

test('lists the machines that hold slots, the one not seen for the longest time first', async () => {
  const { id, key: licenseKey } = await license()
  expect(await list({ licenseKey })).toEqual({ used: 0, max: 3, releasesLeft: 2, machines: [] })
  const recent = await machine(id, 'SECRET-1', '2026-11-20T09:30:00.000Z', 'new laptop')
  const old = await machine(id, 'SECRET-2', '2026-01-12T08:30:00.000Z')
  const ended = await machine(id, 'SECRET-3', '2026-01-01T00:00:00.000Z', 'ended')
  await harness.database.pool.query('update machines set lease_ends_at = now() where id = $1', [ended])
  const machines = [
    { ref: old, hostname: null, lastSeenAt: '2026-01-12T08:30:00.000Z', current: false },
    { ref: recent, hostname: 'new laptop', lastSeenAt: '2026-11-20T09:30:00.000Z', current: true },
  ]
  expect(await list({ licenseKey, fingerprint: 'SECRET-1' })).toEqual({ used: 2, max: 3, releasesLeft: 2, machines })
  for (const fingerprint of [undefined, null, '', 'secret-1'])
    expect((await list({ licenseKey, fingerprint })).machines.map(({ current }) => current)).toEqual([false, false])
  const { text } = await request({ licenseKey })
  expect(text).not.toContain('SECRET')
  expect(text).not.toContain(Buffer.from('SECRET').toString('hex'))
})

test('lists at most 100 machines with short host names, which fit into 64 KiB', async () => {
  const { id, key: licenseKey } = await license({ maxMachines: null })
  await harness.database.pool.query(
    `insert into machines (id, license_id, machine_id, hostname)
     select new_id(), $1, convert_to('m' || n, 'UTF8'), repeat(chr(1), 512) from generate_series(1, 101) n`,
    [id],
  )
  const { text, body } = await request({ licenseKey })
  const { used, max, machines } = licenseMachines.parse(body)
  expect([used, max, machines.length]).toEqual([101, null, 100])
  expect(machines[0]?.hostname).toBe('\u0001'.repeat(64))
  expect(Buffer.byteLength(text)).toBeLessThan(64 * 1024)
})

test('counts the releases of the last 30 days', async () => {
  const { id, key: licenseKey } = await license()
  const left = async () => (await list({ licenseKey })).releasesLeft
  const released = (age: string) =>
    harness.database.pool.query(`insert into slot_releases (license_id, at) values ($1, now() - $2::interval)`, [
      id,
      age,
    ])
  await released('31 days')
  expect(await left()).toBe(2)
  await released('29 days')
  expect(await left()).toBe(1)
  for (const age of ['1 day', '1 hour']) await released(age)
  expect(await left()).toBe(0)
})

test('lists the machines of a license in any status', async () => {
  const { id, key: licenseKey } = await license()
  await machine(id, 'm', '2026-11-20T09:30:00.000Z')
  for (const action of ['suspend', 'revoke']) {
    await vendor.call('POST', `licenses/${id}/${action}`)
    expect((await list({ licenseKey })).machines).toHaveLength(1)
  }
})

test('requires a limit of releases or leases', async () => {
  const off = await license({ maxReleases: null })
  expect(outcome(await request({ licenseKey: off.key }))).toBe('403 NOT_ENABLED')
  const { key: licenseKey } = await license({ maxReleases: null, leaseSeconds: 600 })
  expect(await list({ licenseKey })).toEqual({ used: 0, max: 3, releasesLeft: null, machines: [] })
  expect((await list({ licenseKey: (await license({ maxReleases: 0 })).key })).releasesLeft).toBe(0)
})

test('returns the same response for an unknown key and for one of another organization or product', async () => {
  const { key: licenseKey, productId } = await license()
  const off = await license({ maxReleases: null })
  const stranger = await createVendor(harness)
  const keyFor = async (product: string) => {
    const response = await vendor.call('POST', 'api-keys', { body: { name: 'bound', productId: product } })
    return expectBody(response, 201, createdApiKey.required({ secret: true })).secret
  }
  const bound = await keyFor(await vendor.product())
  const unknown = await request({ licenseKey: 'no such key' })
  expect(outcome(unknown)).toBe('409 NOT_FOUND')
  const withoutId = (text: string) => text.replace(/"requestId":"[^"]*"/, '')
  for (const token of [stranger.apiKey, bound])
    for (const key of [licenseKey, off.key]) {
      const response = await request({ licenseKey: key }, token)
      expect([response.status, withoutId(response.text)]).toEqual([409, withoutId(unknown.text)])
    }
  for (const key of ['x'.repeat(129), `${licenseKey}\u0000`, 'ü'])
    expect(outcome(await request({ licenseKey: key }))).toBe('409 NOT_FOUND')
  expect((await request({ licenseKey }, await keyFor(productId))).status).toBe(200)
  for (const body of [{}, { licenseKey: '' }, { licenseKey, fingerprint: 'x'.repeat(513) }])
    expect(outcome(await request(body))).toBe('422 INVALID_REQUEST')
})
