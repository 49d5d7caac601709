/**
 * Tests many checks of full licenses. Checks of machines without a slot must cause few statements per second in Postgres. Every
 * validator must soon find a slot that becomes free (docs/api.md#s5).
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertMachine, insertOrganization } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, untilReady } from '../faults/support/children.ts'
import { check, deactivate } from '../faults/support/client.ts'
import { byLength, figure, quantiles } from '../faults/support/length.ts'
import { createPostgres, openPool, type TestPostgres } from '../faults/support/postgres.ts'

const CHECKS = 10_000

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let agent: Agent
let organizationId: string
let secret: string
let validators: Service[]

beforeAll(async () => {
  postgres = await createPostgres({
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track': 'top', // Excludes the statements inside functions.
  })
  pool = openPool(postgres.url)
  await pool.query('create extension pg_stat_statements')
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  agent = new Agent({ keepAlive: true, maxSockets: 96 })
  validators = await Promise.all(
    Array.from({ length: 3 }, () => startValidator(postgres.validatorUrl, { LOG_LEVEL: 'error' })),
  )
  await untilReady(...validators)
})
afterAll(async () => {
  for (const validator of validators) await validator.stop()
  await endChildren()
  agent.destroy()
  await pool.end()
  await postgres.remove()
})

const portOf = (i: number): number => validators[i % validators.length]?.port ?? 0

async function fullLicense(): Promise<{ id: string; key: string }> {
  const license = await insertLicense(pool, { organizationId, maxMachines: 1 })
  await insertMachine(pool, { licenseId: license.id, machineId: 'holder' })
  for (let i = 0; i < validators.length; i++)
    while ((await check(portOf(i), secret, { license: license.key, fingerprint: 'holder' }, agent)).code !== 'VALID')
      await sleep(10)
  return license
}

/** Returns the number of statements by kind, from the statistics of Postgres. */
async function statements(): Promise<{ claims: number; flushes: number; all: number }> {
  const { rows } = await pool.query<{ claims: number; flushes: number; all: number }>(
    `select coalesce(sum(calls) filter (where query like '%claim_slots(%'), 0)::int as claims,
       coalesce(sum(calls) filter (where query like '%write_usage(%'), 0)::int as flushes, sum(calls)::int as all
     from pg_stat_statements`,
  )
  return rows[0] ?? { claims: 0, flushes: 0, all: 0 }
}

/** Runs `work`. Returns the number of statements per second meanwhile, by kind. */
async function during(work: () => Promise<unknown>): Promise<Record<'claims' | 'flushes' | 'all' | 'seconds', number>> {
  const before = await statements()
  const startedMs = performance.now()
  await work()
  const seconds = (performance.now() - startedMs) / 1_000
  const after = await statements()
  const rate = (kind: keyof typeof after): number => Math.round(((after[kind] - before[kind]) / seconds) * 10) / 10
  return { claims: rate('claims'), flushes: rate('flushes'), all: rate('all'), seconds: Math.round(seconds * 10) / 10 }
}

/** Sends checks of different machines to the validators in turn, 96 at a time. */
async function flood(keys: readonly string[]): Promise<void> {
  let next = 0
  const send = async (): Promise<void> => {
    for (let n = next++; n < CHECKS; n = next++) {
      const license = keys[n % keys.length] ?? ''
      const { code } = await check(portOf(n), secret, { license, fingerprint: `pirate ${n}` }, agent)
      if (code !== 'TOO_MANY_MACHINES') throw new Error(`machine ${n} without a slot got ${code}`)
    }
  }
  await Promise.all(Array.from({ length: 96 }, send))
}

test.each([1, 40])(
  `${CHECKS} checks over the limit of %i licenses cause a few statements per second`,
  {
    timeout: 120_000,
  },
  async (count) => {
    const licenses = await Promise.all(Array.from({ length: count }, fullLicense))
    const idle = await during(() => sleep(byLength(1_500, 5_000)))
    const flooded = await during(() => flood(licenses.map(({ key }) => key)))
    figure(`${CHECKS} checks over the limit of ${count} licenses, statements a second`, {
      ...flooded,
      'all when idle': idle.all,
    })
    // Each validator rechecks its full licenses in batches, at most five times per second, for any number of checks and licenses.
    expect(flooded.claims).toBeLessThan(validators.length * 7)
  },
)

test('every validator finds a slot that becomes free', { timeout: 120_000 }, async () => {
  const tookMs: number[] = []
  const quietMs: number[] = []
  for (let round = 0; round < byLength(2, 20); round++) {
    for (const [finder, releaser] of [0, 1, 2].flatMap((a) => [0, 1, 2].map((b) => [a, b] as const))) {
      const license = await fullLicense()
      const ask = async (): Promise<boolean> =>
        (await check(portOf(finder), secret, { license: license.key, fingerprint: 'next' }, agent)).code === 'VALID'
      expect(await ask()).toBe(false)
      expect((await deactivate(portOf(releaser), secret, license.key, 'holder')).text).toBe('{"deactivated":true}')
      const startedMs = performance.now()
      while (!(await ask())) await sleep(5)
      tookMs.push(performance.now() - startedMs)
    }
    // Frees a slot without a notification, so that only a recheck finds the slot.
    const license = await fullLicense()
    const client = await pool.connect()
    await client.query('begin; set local session_replication_role = replica') // No trigger runs, so the change log has no entry.
    await client.query('delete from machines where license_id = $1', [license.id])
    await client.query('update license_slots set used = 0 where license_id = $1', [license.id])
    await client.query('commit')
    client.release()
    const startedMs = performance.now()
    const finder = portOf(round)
    while ((await check(finder, secret, { license: license.key, fingerprint: 'next' }, agent)).code !== 'VALID')
      await sleep(5)
    quietMs.push(performance.now() - startedMs)
  }
  figure('a free slot is found after ms', { ...quantiles(tookMs), tries: tookMs.length })
  figure('a free slot is found without a notification after ms', { ...quantiles(quietMs), tries: quietMs.length })
  expect(Math.max(...tookMs, ...quietMs)).toBeLessThan(byLength(10_000, 500))
})
