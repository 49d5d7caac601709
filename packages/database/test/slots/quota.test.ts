/** Tests the quota of machines of an organization in claims (docs/api.md#s10), and its counter. */

import { createTestDatabase, insertLicense, insertOrganization, random, type TestDatabase } from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Claim, claimSlots, releaseSlots, uuidToBytes } from '../../src/index.ts'

const SEED = 1_918

let database: TestDatabase
let validators: pg.Pool

beforeAll(async () => {
  database = await createTestDatabase()
  validators = new pg.Pool({ connectionString: database.validatorUrl, max: 4 })
})
afterAll(async () => {
  await validators.end()
  await database.drop()
})

const query = (text: string, values: unknown[] = []) => database.pool.query(text, values)

async function organization(machines: number | null): Promise<string> {
  const id = await insertOrganization(database.pool)
  await setQuota(id, machines)
  return id
}

const setQuota = (organizationId: string, machines: number | null) =>
  query('update organizations set quotas = $2 where id = $1', [organizationId, machines === null ? {} : { machines }])

const license = async (organizationId: string, maxMachines: number | null, leaseSeconds: number | null = null) =>
  (await insertLicense(database.pool, { organizationId, maxMachines, leaseSeconds })).id

const claim = (licenseId: string, machine: string): Claim => ({
  licenseId: uuidToBytes(licenseId),
  machineId: Buffer.from(machine),
  hostname: null,
})

const names = (count: number, prefix = 'm') => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

async function outcomes(claims: Claim[]): Promise<string[]> {
  return (await claimSlots(validators, claims, { patient: true })).map(({ outcome }) => outcome)
}

const outcomesOf = (licenseId: string, machines: readonly string[]) =>
  outcomes(machines.map((machine) => claim(licenseId, machine)))

async function number(text: string, organizationId: string): Promise<number> {
  const { rows } = await database.pool.query<{ value: number }>(`select (${text})::integer as value`, [organizationId])
  return rows[0]?.value ?? -1
}

const machines = (organizationId: string) =>
  number('select count(*) from machines where organization_id = $1', organizationId)
const counted = (organizationId: string) =>
  number(
    `select coalesce(sum(used), 0) from organization_usage where organization_id = $1 and quota = 'machines'`,
    organizationId,
  )

test('beyond the quota, a new machine gets no slot of any license, and known machines keep theirs', async () => {
  const id = await organization(5)
  const [one, other] = [await license(id, 100), await license(id, 100)]
  expect(await outcomesOf(one, names(3))).toEqual(['granted', 'granted', 'granted'])
  // The quota also applies to the licenses and machines of one call together.
  expect(
    await outcomes([...names(2), ...names(2)].map((name, i) => claim(i < 2 ? other : one, `${name} ${i}`))),
  ).toEqual(['granted', 'granted', 'limit', 'limit'])
  expect(await outcomesOf(one, [...names(3), 'new'])).toEqual(['known', 'known', 'known', 'limit'])
  await setQuota(id, 1)
  expect(await outcomesOf(one, [...names(3), 'new'])).toEqual(['known', 'known', 'known', 'limit'])
  const elsewhere = await license(await organization(5), 100)
  expect(await outcomes([claim(one, 'new'), claim(elsewhere, 'new')])).toEqual(['limit', 'granted'])
  expect(await machines(id)).toBe(5)
  const { rows } = await query('select used from license_slots where license_id = any ($1)', [[one, other]])
  expect(rows).toEqual([{ used: 3 }, { used: 2 }])
})

test('machines of a license without a limit leave the last 20 % of the quota to other licenses', async () => {
  const id = await organization(10)
  const [unlimited, limited] = [await license(id, null), await license(id, 100)]
  expect(await outcomesOf(unlimited, names(9))).toEqual([...Array<string>(8).fill('recorded'), 'capped'])
  const { rows } = await query('select unrecorded::integer from license_slots where license_id = $1', [unlimited])
  expect(rows).toEqual([{ unrecorded: 1 }])
  expect(await outcomesOf(limited, names(3))).toEqual(['granted', 'granted', 'limit'])
  expect(await outcomesOf(unlimited, ['m0', 'm8'])).toEqual(['known', 'capped'])
})

test('concurrent calls exceed the quota at most by the machines of the calls that execute at that moment', async () => {
  const id = await organization(100)
  const licenses = await Promise.all(names(4).map(() => license(id, 1_000)))
  const [calls, size] = [20, 5]
  const claimAll = async (licenseId: string, connection: number): Promise<void> => {
    for (let call = 0; call < calls; call++) await outcomesOf(licenseId, names(size, `${connection} ${call} `))
  }
  await Promise.all(licenses.slice(0, 2).map(claimAll))
  expect(await machines(id)).toBeGreaterThanOrEqual(100)
  expect(await machines(id)).toBeLessThanOrEqual(100 + size)
  const before = await machines(id)
  await Promise.all(licenses.slice(2).map(claimAll))
  expect(await machines(id)).toBe(before)
})

test('a released machine, a deleted license and a higher quota make room', async () => {
  const id = await organization(2)
  const [one, other] = [await license(id, 100), await license(id, 100)]
  expect(await outcomesOf(one, names(3))).toEqual(['granted', 'granted', 'limit'])
  await releaseSlots(validators, [claim(one, 'm0')])
  expect(await outcomesOf(other, names(2))).toEqual(['granted', 'limit'])
  await query('delete from licenses where id = $1', [one])
  expect(await outcomesOf(other, names(3))).toEqual(['known', 'granted', 'limit'])
  await setQuota(id, 3)
  expect(await outcomesOf(other, names(4))).toEqual(['known', 'known', 'granted', 'limit'])
})

test('leases are renewed beyond the quota, and an ended lease makes room', async () => {
  const id = await organization(2)
  const leased = await license(id, 100, 60)
  expect(await outcomesOf(leased, names(3))).toEqual(['granted', 'granted', 'limit'])
  await setQuota(id, 1)
  await query(`update machines set lease_ends_at = now() + interval '1 second' where license_id = $1`, [leased])
  expect(await outcomesOf(leased, names(3))).toEqual(['known', 'known', 'limit'])
  expect(
    await number(
      `select count(*) from machines where organization_id = $1 and lease_ends_at > now() + interval '50 seconds'`,
      id,
    ),
  ).toBe(2)
  await query(`update machines set lease_ends_at = now() where license_id = $1`, [leased])
  expect(await outcomesOf(leased, names(3))).toEqual(['granted', 'limit', 'limit'])
})

test('a large quota is applied from the level of 80 % on, without a sum of the counter before', async () => {
  const id = await organization(2_000_000)
  const limited = await license(id, 100)
  await query(`insert into organization_usage (organization_id, quota, used) values ($1, 'machines', 1999999)`, [id])
  expect(await outcomesOf(limited, names(2))).toEqual(['granted', 'granted'])
  await query(`insert into quota_levels (organization_id, quota, percent) values ($1, 'machines', 80)`, [id])
  expect(await outcomesOf(limited, names(3))).toEqual(['known', 'known', 'limit'])
  await query(`update quota_levels set percent = 0 where organization_id = $1`, [id])
  expect(await outcomesOf(limited, names(3))).toEqual(['known', 'known', 'granted'])
})

test('the counter equals the number of machines after random claims, releases, ended leases and deletions', async () => {
  const { int, pick, chance } = random(SEED)
  const ids = [await organization(30), await organization(null), await organization(12)]
  const licenses: string[] = []
  const add = async () => licenses.push(await license(pick(ids), pick([1, 3, 10, null]), pick([null, 60])))
  for (let i = 0; i < 12; i++) await add()
  for (let step = 0; step < 150; step++) {
    const some = names(1 + int(6)).map(() => claim(pick(licenses), `m${int(12)}`))
    if (chance(0.6)) await outcomes(some)
    else if (chance(0.5)) await releaseSlots(validators, some)
    else if (chance(0.4))
      await query('update machines set lease_ends_at = now() where license_id = $1 and lease_ends_at is not null', [
        pick(licenses),
      ])
    else if (chance(0.35)) await query('delete from machines where license_id = $1', [pick(licenses)])
    else if (chance(0.3)) {
      await query('delete from licenses where id = $1', [licenses.splice(int(licenses.length), 1)[0]])
      await add()
    } else await query(`select fold_usage($1, 'machines')`, [pick(ids)])
  }
  const numbers = () => Promise.all(ids.flatMap((id) => [machines(id), counted(id)]))
  const before = await numbers()
  for (let i = 0; i < ids.length; i++) expect(before[2 * i + 1]).toBe(before[2 * i])
  expect(before[0]).toBeGreaterThan(0)
  expect(before[0]).toBeLessThanOrEqual(30)
  expect(before[4]).toBeLessThanOrEqual(12)
  await query('select recount_usage()')
  expect(await numbers()).toEqual(before)
  await query('truncate machines')
  expect(await numbers()).toEqual(before.map(() => 0))
  await query('delete from organizations where id = any ($1)', [ids])
  expect(await numbers()).toEqual(before.map(() => 0))
})
