/** Tests the limit of releases by apps (docs/api.md#l2). */

import {
  createTestDatabase,
  insertLicense,
  insertMachine,
  insertOrganization,
  type TestDatabase,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Release, releaseSlots, uuidToBytes } from '../../src/index.ts'

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

/** Creates a license with machines `m0`, `m1` and so on. */
async function license(maxReleases: number | null, machines: number): Promise<string> {
  const { id } = await insertLicense(database.pool, { organizationId, maxMachines: 100 })
  await database.pool.query('update licenses set max_releases = $2 where id = $1', [id, maxReleases])
  for (let n = 0; n < machines; n++) await insertMachine(database.pool, { licenseId: id, machineId: `m${n}` })
  return id
}

const release = (licenseId: string, machine: string): Release => ({
  licenseId: uuidToBytes(licenseId),
  machineId: Buffer.from(machine),
})

async function outcomes(releases: Release[]): Promise<string[]> {
  return (await releaseSlots(validator, releases)).map(({ outcome, used }) => `${outcome} ${used}`)
}

async function usedOf(licenseId: string): Promise<number | undefined> {
  const { rows } = await database.pool.query<{ used: number }>('select used from license_slots where license_id = $1', [
    licenseId,
  ])
  return rows[0]?.used
}

async function limited(licenseId: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ machine: Buffer; count: number }>(
    `select machine_id as machine, count from activity where license_id = $1 and type = 'RELEASE_LIMIT_REACHED' order by machine_id`,
    [licenseId],
  )
  return rows.map(({ machine, count }) => `${machine.toString()} ${count}`)
}

test('releases slots up to the limit, and records requests beyond it', async () => {
  const [two, none, any] = [await license(2, 4), await license(0, 1), await license(null, 3)]
  expect(
    await outcomes([
      release(two, 'unknown'),
      release(two, 'm0'),
      release(none, 'm0'),
      release(two, 'm0'),
      release(two, 'm1'),
      release(two, 'm2'),
      release(any, 'm0'),
      release(any, 'm1'),
    ]),
  ).toEqual([
    'unknown null',
    'released 2',
    'unknown null',
    'unknown null',
    'released 2',
    'unknown null',
    'released 1',
    'released 1',
  ])
  expect(await outcomes([release(two, 'm2'), release(two, 'm3'), release(any, 'm2')])).toEqual([
    'unknown null',
    'unknown null',
    'released 0',
  ])
  expect([await usedOf(two), await usedOf(none)]).toEqual([2, 1])
  expect(await limited(two)).toEqual(['m2 2', 'm3 1'])
  const { rows } = await database.pool.query<{ inTime: boolean }>(
    `select bool_and(at > now() - interval '1 minute' and first_at - at < interval '1 ms') as "inTime" from activity
     where license_id = $1 and type = 'RELEASE_LIMIT_REACHED'`,
    [two],
  )
  expect(rows).toEqual([{ inTime: true }])
  expect([await limited(none), await limited(any)]).toEqual([['m0 1'], []])
})

test('combines the requests beyond the limit by days of UTC, whatever the time zone of the session', async () => {
  const id = await license(0, 1)
  const client = await validator.connect()
  // In one transaction, all requests have the same time.
  await client.query('begin')
  for (const zone of ['Asia/Kolkata', 'Pacific/Marquesas']) {
    await client.query(`set local time zone '${zone}'`)
    await releaseSlots(client, [release(id, 'm0')])
  }
  await client.query('commit')
  client.release()
  expect(await limited(id)).toEqual(['m0 2'])
  const { rows } = await database.pool.query<{ key: string; at: Date }>(
    `select d.id::text as key, d.at from daily_entries d join activity a on a.at = d.at and right(a.id::text, 18) = right(d.id::text, 18)
     where a.license_id = $1`,
    [id],
  )
  expect(rows).toHaveLength(1)
  const { key, at } = rows[0]!
  const day = Number.parseInt(key.slice(0, 13).replace('-', ''), 16)
  expect(day).toBe(at.getTime() - (at.getTime() % 86_400_000))
})

test('counts only releases by apps in the last 30 days and since the limit was set', async () => {
  const id = await license(null, 6)
  await outcomes([release(id, 'm0')])
  await database.pool.query('update licenses set max_releases = 1 where id = $1', [id])
  await database.pool.query(`delete from machines where license_id = $1 and machine_id = 'm1'`, [id])
  expect(await outcomes([release(id, 'm2')])).toEqual(['released 3'])
  expect(await outcomes([release(id, 'm3')])).toEqual(['unknown null'])
  await database.pool.query(`update slot_releases set at = at - interval '30 days' where license_id = $1`, [id])
  expect(await outcomes([release(id, 'm3')])).toEqual(['released 2'])
  const { rows } = await database.pool.query('select from slot_releases where license_id = $1', [id])
  expect(rows).toHaveLength(1)
  await database.pool.query('update licenses set max_releases = 2 where id = $1', [id])
  expect(await outcomes([release(id, 'm4')])).toEqual(['released 1'])
})

test('concurrent releases do not exceed the limit', async () => {
  const id = await license(10, 40)
  const retried = async (one: Release): Promise<string> => {
    const [answer] = await releaseSlots(validator, [one])
    return answer?.outcome === 'busy' ? retried(one) : (answer?.outcome ?? '')
  }
  const all = await Promise.all(Array.from({ length: 40 }, (_, n) => retried(release(id, `m${n}`))))
  expect(all.filter((outcome) => outcome === 'released')).toHaveLength(10)
  expect(await usedOf(id)).toBe(30)
})

const UNKNOWN_REF = '01912d68-783e-7a03-8467-5661c1243ad4'

/** Returns the release of a machine by the id of its row, which `machine` names. */
async function byRef(licenseId: string, machine: string, of = licenseId): Promise<Release> {
  const { rows } = await database.pool.query<{ id: string }>(
    'select id from machines where license_id = $1 and machine_id = $2',
    [of, Buffer.from(machine)],
  )
  return { ...release(licenseId, ''), ref: rows[0]?.id ?? UNKNOWN_REF }
}

test('releases machines by ref, beside others by machine id, and returns their machine ids', async () => {
  const [one, other] = [await license(3, 3), await license(3, 1)]
  const [first, foreign, unknown] = [await byRef(one, 'm0'), await byRef(one, 'm0', other), await byRef(one, 'none')]
  const answers = await releaseSlots(validator, [
    first,
    release(one, 'm0'),
    release(one, 'm1'),
    foreign,
    unknown,
    first,
  ])
  expect(answers.map(({ outcome, used }) => `${outcome} ${used}`)).toEqual([
    'released 1',
    'unknown null',
    'released 1',
    'unknown null',
    'unknown null',
    'unknown null',
  ])
  expect(answers.map(({ machineId }) => Buffer.from(machineId ?? []).toString())).toEqual(['m0', '', '', '', '', 'm0'])
  expect(await outcomes([first])).toEqual(['unknown null'])
  expect([await usedOf(one), await usedOf(other)]).toEqual([1, 1])
})

test('releases by ref count toward the limit, and are enabled by a limit or by leases', async () => {
  const [limited1, none, off, leased] = [
    await license(1, 2),
    await license(0, 1),
    await license(null, 1),
    await license(null, 1),
  ]
  await database.pool.query('update licenses set lease_seconds = 600 where id = $1', [leased])
  expect(await outcomes([await byRef(limited1, 'm0'), await byRef(limited1, 'm1')])).toEqual([
    'released 1',
    'unknown null',
  ])
  const rest = [await byRef(none, 'm0'), await byRef(off, 'm0'), await byRef(off, 'none'), await byRef(leased, 'm0')]
  expect(await outcomes(rest)).toEqual(['unknown null', 'not_enabled null', 'not_enabled null', 'released 0'])
  const deleted = { ...release('01912d68-783e-7a03-8467-5661c1243ad5', ''), ref: UNKNOWN_REF }
  expect(await outcomes([deleted, release(off, 'm0')])).toEqual(['unknown null', 'released 0'])
  expect(await limited(limited1)).toEqual(['m1 1'])
})

test('concurrent releases of one ref release one slot', async () => {
  const id = await license(10, 3)
  const one = await byRef(id, 'm0')
  const retried = async (): Promise<string> => {
    const [answer] = await releaseSlots(validator, [one])
    return answer?.outcome === 'busy' ? retried() : (answer?.outcome ?? '')
  }
  const all = await Promise.all(Array.from({ length: 20 }, retried))
  expect(all.filter((outcome) => outcome === 'released')).toHaveLength(1)
  expect(await usedOf(id)).toBe(2)
  expect((await database.pool.query('select from slot_releases where license_id = $1', [id])).rowCount).toBe(1)
})
