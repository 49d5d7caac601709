/**
 * Tests the usage that checks record. A check that an exclusion decides only increments the match counters of its rules
 * (docs/api.md#v7). A blacklisted check takes no slot, but is recorded. An overuse alert counts further checks until it is
 * acknowledged (docs/api.md#d4).
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertMachine, insertOrganization, insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, until, untilReady } from '../faults/support/children.ts'
import { check } from '../faults/support/client.ts'
import { byLength, figure, quantiles } from '../faults/support/length.ts'
import { createPostgres, openPool, type TestPostgres } from '../faults/support/postgres.ts'

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let validator: Service
let organizationId: string
let secret: string
let exclusion: string
let lenient: string
let blacklist: string

const LONG_AGO = `'2020-01-01T00:00:00Z'::timestamptz`

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  const hwid = { organizationId, type: 'HWID' } as const
  exclusion = await insertRule(pool, { ...hwid, kind: 'EXCLUSION', value: 'excluded' })
  lenient = await insertRule(pool, { ...hwid, kind: 'EXCLUSION', value: 'lenient', allowSuspendedOrExpired: true })
  blacklist = await insertRule(pool, { ...hwid, value: 'refused' })
  validator = await startValidator(postgres.validatorUrl, { LOG_LEVEL: 'error' })
  await untilReady(validator)
})
afterAll(async () => {
  await validator.stop()
  await endChildren()
  await pool.end()
  await postgres.remove()
})

type License = Awaited<ReturnType<typeof insertLicense>>

async function insert(given: Partial<Parameters<typeof insertLicense>[1]>): Promise<License> {
  const license = await insertLicense(pool, { organizationId, ...given })
  // The rejection shows that the validator has applied the rule. No other check has this machine id.
  await until(async () => (await ask(license, 'refused')) === 'BLACKLISTED')
  return license
}

const ask = async (license: License, fingerprint: string): Promise<string> =>
  (await check(validator.port, secret, { license: license.key, fingerprint })).code

const matches = async (rule: string): Promise<number> =>
  (await count('access_rule_counters', 'rule_id = $1', [rule], 'match_count')) ?? 0

async function count(table: string, where: string, values: unknown[], what = '1'): Promise<number | null> {
  const text = `select sum(${what})::int as n from ${table} where ${where}`
  return (await pool.query<{ n: number | null }>(text, values)).rows[0]?.n ?? null
}

/** Resolves when all usage so far is in Postgres. */
async function flushed(): Promise<void> {
  const marker = await insertLicense(pool, { organizationId, maxMachines: null })
  await until(async () => (await ask(marker, '')) === 'VALID')
  await until(async () => ((await count('activity', 'license_id = $1', [marker.id])) ?? 0) > 0)
}

test('an excluded check only increments the match counters of its rules', async () => {
  const full = await insert({ maxMachines: 1 })
  await insertMachine(pool, { licenseId: full.id, machineId: 'excluded' })
  const licenses = [
    full,
    await insert({ maxMachines: 5 }),
    await insert({ maxMachines: null }),
    await insert({ status: 'suspended' }),
    await insert({ status: 'revoked' }),
    await insert({ expiresAt: new Date(Date.now() - 1_000) }),
  ]
  await flushed()
  await pool.query(`update machines set last_seen_at = ${LONG_AGO}`)
  const before = [await matches(exclusion), await matches(lenient)]
  // Excludes checks with unknown keys, because the test sends such checks while it waits for its licenses.
  const knownLicenses = `organization_id = $1 and code <> 'NOT_FOUND'`
  const counted = await count('check_counts', knownLicenses, [organizationId], 'count')
  const codes: Record<string, string[]> = { excluded: [], lenient: [] }
  for (const machine of ['excluded', 'lenient'])
    for (const license of licenses) codes[machine]?.push(await ask(license, machine))
  expect(codes).toEqual({
    excluded: ['VALID', 'VALID', 'VALID', 'SUSPENDED', 'REVOKED', 'EXPIRED'],
    lenient: ['VALID', 'VALID', 'VALID', 'VALID', 'REVOKED', 'VALID'],
  })
  await flushed()
  expect([await matches(exclusion), await matches(lenient)]).toEqual(before.map((n) => n + licenses.length))
  const machine = `machine_id in ('excluded', 'lenient')`
  expect(await count('activity', machine, [])).toBeNull()
  expect(await count('machines', `${machine} and license_id <> $1`, [full.id])).toBeNull()
  expect(await count('machines', `last_seen_at > ${LONG_AGO}`, [])).toBeNull()
  expect(await count('alerts', 'organization_id = $1', [organizationId])).toBeNull()
  const markers = 1 // The check of `flushed`.
  expect(await count('check_counts', knownLicenses, [organizationId], 'count')).toBe((counted ?? 0) + markers)
})

test('a blacklisted check takes no slot and appears in analytics and activity', async () => {
  for (const license of [await insert({ maxMachines: 5 }), await insert({ maxMachines: null })]) {
    await flushed()
    const before = await matches(blacklist)
    const seen = (): Promise<number | null> =>
      count('activity', `license_id = $1 and code = 'BLACKLISTED' and machine_id = 'refused'`, [license.id], 'count')
    const counts = (): Promise<number | null> =>
      count('check_counts', `product_id = $1 and code = 'BLACKLISTED'`, [license.productId], 'count')
    const [activity, analytics] = [await seen(), await counts()]
    for (let i = 0; i < 7; i++) expect(await ask(license, 'refused')).toBe('BLACKLISTED')
    await flushed()
    expect(await matches(blacklist)).toBe(before + 7)
    expect([await seen(), await counts()]).toEqual([(activity ?? 0) + 7, (analytics ?? 0) + 7])
    expect(await count('machines', 'license_id = $1', [license.id])).toBeNull()
  }
})

test('an overuse alert counts checks until it is acknowledged, and a later check starts a new alert', async () => {
  const license = await insert({ maxMachines: 1 })
  expect(await ask(license, 'holder')).toBe('VALID')
  const alerts = async (): Promise<unknown[]> => {
    const text = `select count::int, acknowledged_at is not null as done, last_at >= first_at as ordered
                  from alerts where license_id = $1 order by id`
    return (await pool.query<object>(text, [license.id])).rows
  }
  for (let i = 0; i < 3; i++) expect(await ask(license, `pirate ${i}`)).toBe('TOO_MANY_MACHINES')
  await flushed()
  expect(await alerts()).toEqual([{ count: 3, done: false, ordered: true }])
  await sleep(5)
  for (let i = 0; i < 2; i++) expect(await ask(license, `pirate ${i}`)).toBe('TOO_MANY_MACHINES')
  await flushed()
  expect(await alerts()).toEqual([{ count: 5, done: false, ordered: true }])
  await pool.query('update alerts set acknowledged_at = now() where license_id = $1', [license.id])
  expect(await ask(license, 'pirate 9')).toBe('TOO_MANY_MACHINES')
  await flushed()
  expect(await alerts()).toEqual([
    { count: 5, done: true, ordered: true },
    { count: 1, done: false, ordered: true },
  ])
})

test('a check appears in activity and analytics within seconds', { timeout: 120_000 }, async () => {
  const license = await insert({ maxMachines: null })
  const tookMs: number[] = []
  for (let round = 0; round < byLength(3, 20); round++) {
    const startedMs = performance.now()
    expect(await ask(license, `round ${round}`)).toBe('VALID')
    const found = [license.id, Buffer.from(`round ${round}`)]
    await until(
      async () => (await count('activity', `license_id = $1 and machine_id = $2 and code = 'VALID'`, found)) === 1,
    )
    tookMs.push(performance.now() - startedMs)
    await sleep((137 * round) % 1_000)
  }
  figure('a check is in the activity feed after ms', { ...quantiles(tookMs), checks: tookMs.length })
  expect(Math.max(...tookMs)).toBeLessThan(byLength(20_000, 2_000))
})

test('the last-seen time of a machine is written at its first check, and not again within the interval', async () => {
  const license = await insert({ maxMachines: 2 })
  expect(await ask(license, 'm')).toBe('VALID')
  await flushed()
  const age = `select (extract(epoch from now() - last_seen_at))::float8 as n from machines where license_id = $1`
  const ageOf = async (): Promise<number> => (await pool.query<{ n: number }>(age, [license.id])).rows[0]?.n ?? -1
  expect(await ageOf()).toBeLessThan(60)
  const before = (await pool.query(`select last_seen_at from machines where license_id = $1`, [license.id])).rows
  for (let i = 0; i < 20; i++) expect(await ask(license, 'm')).toBe('VALID')
  await flushed()
  expect((await pool.query(`select last_seen_at from machines where license_id = $1`, [license.id])).rows).toEqual(
    before,
  )
})
