/** Tests leases of slots (docs/api.md#l3): which machines hold one, when it ends, and the effect of policy changes. */

import {
  createTestDatabase,
  insertLicense,
  insertMachine,
  insertOrganization,
  type TestDatabase,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Claim, claimSlots, releaseSlots, uuidToBytes } from '../../src/index.ts'

let database: TestDatabase
let validator: pg.Pool
let organizationId: string

beforeAll(async () => {
  database = await createTestDatabase()
  validator = new pg.Pool({ connectionString: database.validatorUrl, max: 10 })
  organizationId = await insertOrganization(database.pool)
})
afterAll(async () => {
  await validator.end()
  await database.drop()
})

const leased = async (maxMachines: number, leaseSeconds: number | null = 60) =>
  (await insertLicense(database.pool, { organizationId, maxMachines, leaseSeconds })).id

const claim = (licenseId: string, machine: string): Claim => ({
  licenseId: uuidToBytes(licenseId),
  machineId: Buffer.from(machine),
  hostname: null,
})

async function outcomes(licenseId: string, machines: string[]): Promise<string[]> {
  const answers = await claimSlots(
    validator,
    machines.map((machine) => claim(licenseId, machine)),
    { patient: true },
  )
  return answers.map(({ outcome, used, leaseSeconds }) => `${outcome} ${used} ${leaseSeconds}`)
}

/** Ends the leases of these machines now. */
const end = (licenseId: string, ...machines: string[]) =>
  database.pool.query(
    `update machines set lease_ends_at = now() where license_id = $1 and convert_from(machine_id, 'UTF8') = any ($2)`,
    [licenseId, machines],
  )

/** Gives the machine a file that ends at this interval from now, and with which its slot ends. */
const setFile = (licenseId: string, machine: string, interval: string) =>
  database.pool.query(
    `update machines set file_ends_at = now() + $3::interval, lease_ends_at = now() + $3::interval
     where license_id = $1 and machine_id = $2`,
    [licenseId, Buffer.from(machine), interval],
  )

async function release(licenseId: string, machine: string): Promise<string | undefined> {
  const [answer] = await releaseSlots(validator, [claim(licenseId, machine)])
  return answer?.outcome
}

/** Returns the seconds for which each machine holds its slot, or null when it holds the slot until the release. */
async function leases(licenseId: string): Promise<Record<string, number | null>> {
  const { rows } = await database.pool.query<{ machine: string; seconds: number | null }>(
    `select convert_from(machine_id, 'UTF8') as machine, ceil(extract(epoch from lease_ends_at - now()))::integer as seconds
     from machines where license_id = $1 order by 1`,
    [licenseId],
  )
  return Object.fromEntries(rows.map(({ machine, seconds }) => [machine, seconds]))
}

async function usedOf(licenseId: string): Promise<number | undefined> {
  const { rows } = await database.pool.query<{ used: number }>('select used from license_slots where license_id = $1', [
    licenseId,
  ])
  return rows[0]?.used
}

test('a claim grants a lease, and every further claim renews it', async () => {
  const id = await leased(2)
  expect(await outcomes(id, ['a', 'b', 'c'])).toEqual(['granted 2 60', 'granted 2 60', 'limit 2 null'])
  expect(await leases(id)).toEqual({ a: 60, b: 60 })
  await database.pool.query(`update machines set lease_ends_at = now() + interval '9 s' where license_id = $1`, [id])
  expect(await outcomes(id, ['a', 'a'])).toEqual(['known 2 60', 'known 2 60'])
  expect(await leases(id)).toEqual({ a: 60, b: 9 })
})

test('a claim can take the slot of an ended lease, even for the former machine', async () => {
  const id = await leased(3)
  await outcomes(id, ['a', 'b', 'c'])
  await end(id, 'a', 'b')
  expect(await outcomes(id, ['d', 'a', 'e'])).toEqual(['granted 3 60', 'granted 3 60', 'limit 3 null'])
  expect(Object.keys(await leases(id))).toEqual(['a', 'c', 'd'])
  expect(await usedOf(id)).toBe(3)
  const { rows } = await database.pool.query<{ machine: string }>(
    `select convert_from(machine_id, 'UTF8') as machine from activity where license_id = $1 and type = 'LEASE_ENDED' order by 1`,
    [id],
  )
  expect(rows.map(({ machine }) => machine)).toEqual(['a', 'b'])
})

test('a machine whose lease has ended has no slot to release', async () => {
  const id = await leased(2)
  await outcomes(id, ['a', 'b'])
  await end(id, 'a')
  const releases = ['a', 'b'].map((machine) => claim(id, machine))
  expect((await releaseSlots(validator, releases)).map(({ outcome }) => outcome)).toEqual(['unknown', 'released'])
})

test('racing claims of 200 machines never hold more than 5 slots, while leases end', async () => {
  const id = await leased(5)
  let grants = 0
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      Array.from({ length: 20 }, async (_, batch) => {
        const machines = Array.from({ length: 10 }, (__, n) => `machine ${batch} ${n}`)
        const found = await outcomes(id, machines).catch(() => [])
        grants += found.filter((outcome) => outcome.startsWith('granted')).length
      }),
    )
    const { rows } = await database.pool.query<{ machine: string }>(
      `select convert_from(machine_id, 'UTF8') as machine from machines where license_id = $1 and lease_ends_at > now()`,
      [id],
    )
    expect([rows.length, await usedOf(id)]).toEqual([5, 5])
    await end(id, ...rows.slice(0, 3).map(({ machine }) => machine))
  }
  expect(grants).toBe(5 + 4 * 3)
})

test('a claim takes a free slot even if it cannot delete all ended leases', async () => {
  const id = await leased(3_000)
  await database.pool.query(
    `insert into machines (id, license_id, machine_id, lease_ends_at)
     select gen_random_uuid(), $1, convert_to('m' || n, 'UTF8'), now() from generate_series(1, 2500) n`,
    [id],
  )
  expect(await outcomes(id, ['m2500', 'new'])).toEqual(
    ['granted 502 60', 'granted 502 60'].map((text) => expect.stringMatching(text.slice(0, 9))),
  )
  await outcomes(id, ['m2499'])
  expect(await usedOf(id)).toBe(3)
})

test('a policy change gives machines leases or removes their leases', async () => {
  const id = await leased(5, null)
  await insertMachine(database.pool, { licenseId: id, machineId: 'a' })
  await insertMachine(database.pool, { licenseId: id, machineId: 'b' })
  const set = (policy: string) => database.pool.query(`update licenses set ${policy} where id = $1`, [id])
  await set('lease_seconds = 600')
  expect(await leases(id)).toEqual({ a: 600, b: 600 })
  await set('lease_seconds = 60')
  expect(await leases(id)).toEqual({ a: 600, b: 600 })
  expect(await outcomes(id, ['a'])).toEqual(['known 2 60'])
  expect(await leases(id)).toEqual({ a: 60, b: 600 })
  await end(id, 'b')
  await set('lease_seconds = null')
  expect(await leases(id)).toEqual({ a: null })
  expect(await outcomes(id, ['a', 'c'])).toEqual(['known 2 null', 'granted 2 null'])
  await set('lease_seconds = 60')
  await set('max_machines = null')
  expect(await leases(id)).toEqual({ a: null, c: null })
})

test('a validator of an earlier version can neither claim a leased slot nor follow changes', async () => {
  const id = await leased(5)
  const { rows } = await validator.query<{ outcome: string }>(
    `select outcome from claim_slots($1::uuid[], $2::bytea[], $3::text[], false, '{}')`,
    [[id], [Buffer.from('a')], [null]],
  )
  expect(rows).toEqual([{ outcome: 'busy' }])
  await expect(validator.query("select open_change_log_with('{}')")).rejects.toThrow(/leaseSeconds/)
  await database.pool.query('update licenses set lease_seconds = null')
  await expect(validator.query("select open_change_log_with('{}')")).resolves.toBeDefined()
})

test('a machine holds its slot until its file ends, and then another machine can take it', async () => {
  for (const leaseSeconds of [null, 60]) {
    const id = await leased(1, leaseSeconds)
    await outcomes(id, ['a'])
    await setFile(id, 'a', '1 hour')
    expect(await outcomes(id, ['a', 'b'])).toEqual([`known 1 ${leaseSeconds}`, 'limit 1 null'])
    expect(await leases(id)).toEqual({ a: 3600 })
    expect(await release(id, 'a')).toBe('unknown')
    // The policy changes no slot that belongs to a file.
    await database.pool.query('update licenses set lease_seconds = 600 where id = $1', [id])
    await database.pool.query('update licenses set lease_seconds = null where id = $1', [id])
    expect(await leases(id)).toEqual({ a: 3600 })
    await setFile(id, 'a', '-1 s')
    expect(await outcomes(id, ['b', 'a'])).toEqual(['granted 1 null', 'limit 1 null'])
    expect(await leases(id)).toEqual({ b: null })
  }
})

test('a machine without a lease gets one that ends with its file when its license gets leases', async () => {
  const id = await leased(1, null)
  await outcomes(id, ['a'])
  await database.pool.query(`update machines set file_ends_at = now() + interval '1 hour' where license_id = $1`, [id])
  await database.pool.query('update licenses set lease_seconds = 60 where id = $1', [id])
  expect(await leases(id)).toEqual({ a: 3600 })
})

test('a machine that holds a slot until its release keeps it after its file has ended', async () => {
  const id = await leased(1, null)
  await outcomes(id, ['a'])
  await database.pool.query(`update machines set file_ends_at = now() + interval '1 hour' where license_id = $1`, [id])
  expect(await release(id, 'a')).toBe('unknown')
  await database.pool.query(`update machines set file_ends_at = now() where license_id = $1`, [id])
  expect(await outcomes(id, ['b', 'a'])).toEqual(['limit 1 null', 'known 1 null'])
  expect(await leases(id)).toEqual({ a: null })
  expect(await release(id, 'a')).toBe('released')
})
