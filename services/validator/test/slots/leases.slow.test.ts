/** Tests leases with two validators (docs/api.md#l3, docs/api.md#l4). The test database allows leases of a few seconds. */

import { insertMachine, type Proxy, startProxy } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let proxy: Proxy
let validators: RunningValidator[]

beforeAll(async () => {
  world = await createWorld()
  await world.database.pool.query('alter table licenses drop constraint licenses_lease_seconds_check')
  const url = new URL(world.database.validatorUrl)
  proxy = await startProxy(Number(url.port), url.hostname)
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String(proxy.port)
  validators = await Promise.all([url, through].map(({ href }) => startLoaded(href)))
})
afterAll(async () => {
  await Promise.all(validators.map((validator) => validator.close()))
  await proxy.close()
  await world.database.drop()
})

const check = (i: number, license: string, fingerprint: string): Promise<Reply> =>
  send(validators[i]?.port ?? 0, V2, { body: { license, fingerprint }, secret: world.secret })
const codeOf = async (i: number, license: string, fingerprint: string): Promise<string> =>
  /"code":"(\w+)"/.exec((await check(i, license, fingerprint)).text)?.[1] ?? ''

/** Resolves when both validators have applied all rows inserted so far. */
async function followed(): Promise<void> {
  const { key } = await world.license({ status: 'suspended' })
  for (const i of [0, 1]) await until(async () => (await codeOf(i, key, 'any')) === 'SUSPENDED')
}

/** Returns the end of each machine's lease. */
async function renewals(licenseId: string): Promise<Record<string, string>> {
  const { rows } = await world.database.pool.query<{ machine: string; ends: string }>(
    `select convert_from(machine_id, 'UTF8') as machine, lease_ends_at::text as ends from machines where license_id = $1`,
    [licenseId],
  )
  return Object.fromEntries(rows.map(({ machine, ends }) => [machine, ends]))
}

const end = (licenseId: string, machine: string) =>
  world.database.pool.query(
    `update machines set lease_ends_at = now() where license_id = $1 and machine_id = convert_to($2, 'UTF8')`,
    [licenseId, machine],
  )

test('decides checks from memory in the validator that has renewed the lease of the machine', async () => {
  const { id, key } = await world.license({ maxMachines: 1, leaseSeconds: 600 })
  await followed()
  expect(await codeOf(0, key, 'a')).toBe('VALID')
  const granted = await renewals(id)
  for (let i = 0; i < 20; i++) expect(await codeOf(0, key, 'a')).toBe('VALID')
  expect(await renewals(id)).toEqual(granted)
  await followed()
  // The other validator has received the slot from the change log, which does not contain the end of the lease.
  expect(await codeOf(1, key, 'a')).toBe('VALID')
  const renewed = await renewals(id)
  expect(renewed).not.toEqual(granted)
  expect(await codeOf(1, key, 'a')).toBe('VALID')
  expect(await renewals(id)).toEqual(renewed)
})

test('renews a lease in its second half, and frees the slot when no check follows', async () => {
  const { id, key } = await world.license({ maxMachines: 1, leaseSeconds: 4 })
  await followed()
  expect(await codeOf(0, key, 'a')).toBe('VALID')
  const granted = await renewals(id)
  await until(async () => {
    expect(await codeOf(0, key, 'a')).toBe('VALID')
    return (await renewals(id))['a'] !== granted['a']
  })
  expect(await codeOf(0, key, 'b')).toBe('TOO_MANY_MACHINES')
  await until(async () => (await codeOf(1, key, 'b')) === 'VALID')
  const { rows } = await world.database.pool.query<{ type: string }>(
    `select type from activity where license_id = $1 and type in ('MACHINE_ACTIVATED', 'LEASE_ENDED') order by id`,
    [id],
  )
  expect(rows.map(({ type }) => type).toSorted()).toEqual(['LEASE_ENDED', 'MACHINE_ACTIVATED', 'MACHINE_ACTIVATED'])
})

test('grants a slot within a second after its lease ends, through any validator', async () => {
  const { pool } = world.database
  const licenses = await Promise.all([1, 2, 3, 4, 5].map(() => world.license({ maxMachines: 1, leaseSeconds: 2 })))
  await followed()
  const freeForS = await Promise.all(
    licenses.map(async ({ id, key }, i) => {
      expect(await codeOf(i % 2, key, 'a')).toBe('VALID')
      const ends = (await renewals(id))['a']
      // A machine that waits for the slot sends ten checks a second.
      await until(async () => (await codeOf((i + 1) % 2, key, 'b')) === 'VALID', 100)
      const { rows } = await pool.query<{ s: number }>(
        'select extract(epoch from first_seen_at - $2::timestamptz)::float8 as s from machines where license_id = $1',
        [id, ends],
      )
      return rows[0]?.s ?? Infinity
    }),
  )
  const [fastest = 0, , median] = freeForS.toSorted((a, b) => a - b)
  expect(fastest).toBeGreaterThanOrEqual(0)
  // The median tolerates that a busy host delays two of the five grants.
  expect(median).toBeLessThan(1)
})

test('returns VALID without Postgres until the lease has ended, then 503', async () => {
  const { key } = await world.license({ maxMachines: 1, leaseSeconds: 3 })
  await followed()
  expect(await codeOf(1, key, 'a')).toBe('VALID')
  proxy.refuse()
  expect(await codeOf(1, key, 'a')).toBe('VALID')
  await until(async () => {
    const reply = await check(1, key, 'a')
    expect(['VALID', 'UNAVAILABLE'].some((code) => reply.text.includes(code))).toBe(true)
    return reply.status === 503
  })
  // Another machine receives 503 too, because the only lease may have ended.
  expect((await check(1, key, 'b')).status).toBe(503)
  proxy.heal()
  await until(async () => (await codeOf(1, key, 'a')) === 'VALID')
})

test('ignores the lease in memory after a release or a change of the policy', async () => {
  const { id, key } = await world.license({ maxMachines: 1, leaseSeconds: 600 })
  await followed()
  expect(await codeOf(0, key, 'a')).toBe('VALID')
  await world.database.pool.query('delete from machines where license_id = $1', [id])
  await insertMachine(world.database.pool, { licenseId: id, machineId: 'b' })
  await until(async () => (await codeOf(0, key, 'a')) === 'TOO_MANY_MACHINES')
  expect(await codeOf(0, key, 'b')).toBe('VALID')
  await world.database.pool.query('update licenses set lease_seconds = 60 where id = $1', [id])
  await followed()
  await end(id, 'b')
  // The lease of 600 seconds in memory is now ignored, and the slot is free.
  await until(async () => (await codeOf(0, key, 'a')) === 'VALID')
  expect(await codeOf(0, key, 'b')).toBe('TOO_MANY_MACHINES')
  await world.database.pool.query('update licenses set lease_seconds = null where id = $1', [id])
  await followed()
  const before = await renewals(id)
  for (const i of [0, 1]) expect(await codeOf(i, key, 'a')).toBe('VALID')
  expect(await renewals(id)).toEqual(before)
})

test(
  'grants at most 5 leased slots to 200 machines that race, also after leases have ended',
  { timeout: 60_000 },
  async () => {
    const { id, key } = await world.license({ maxMachines: 5, leaseSeconds: 600 })
    await followed()
    const race = async (): Promise<number> => {
      const codes = await Promise.all(Array.from({ length: 200 }, (_, i) => codeOf(i % 2, key, `machine ${i}`)))
      return codes.filter((code) => code === 'VALID').length
    }
    expect(await race()).toBeLessThanOrEqual(5)
    const held = Object.keys(await renewals(id))
    expect(held).toHaveLength(5)
    for (const machine of held.slice(0, 3)) await end(id, machine)
    await until(async () => (await codeOf(0, key, 'late')) === 'VALID')
    expect(Object.keys(await renewals(id)).length).toBeLessThanOrEqual(5)
  },
)
