/**
 * Tests terms that start with the first check (docs/api.md#l1), with three validators, one of which loses its connections to
 * Postgres.
 */

import { Agent } from 'node:http'

import { insertRule, type Proxy, startProxy } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const agent = new Agent({ keepAlive: true, maxSockets: 50 })
let world: World
let proxy: Proxy
let validators: RunningValidator[]

beforeAll(async () => {
  world = await createWorld()
  const url = new URL(world.database.validatorUrl)
  proxy = await startProxy(Number(url.port), url.hostname)
  const through = new URL(url)
  through.hostname = '127.0.0.1'
  through.port = String(proxy.port)
  validators = await Promise.all([url, url, through].map(({ href }) => startLoaded(href)))
})
afterAll(async () => {
  agent.destroy()
  await Promise.all(validators.map((validator) => validator.close()))
  await proxy.close()
  await world.database.drop()
})

const check = (i: number, license: string, fingerprint?: string): Promise<Reply> =>
  send(validators[i % 3]?.port ?? 0, V2, { body: { license, fingerprint }, secret: world.secret, agent })

/** Resolves when every validator has applied all rows inserted so far. */
async function followed(): Promise<void> {
  const { key } = await world.license({ status: 'suspended' })
  for (const i of [0, 1, 2]) await until(async () => (await check(i, key)).text.includes('SUSPENDED'))
}

async function endOf(id: string): Promise<{ expiresAt: string | null; starts: number }> {
  const { rows } = await world.database.pool.query<{ expires: Date | null; starts: number }>(
    `select expires_at as expires, (select count(*)::integer from activity a
       where a.license_id = l.id and a.type = 'TERM_STARTED') as starts from licenses l where id = $1`,
    [id],
  )
  const [row] = rows
  return { expiresAt: row?.expires?.toISOString() ?? null, starts: row?.starts ?? 0 }
}

test(
  'starts a term once for 1,000 concurrent first checks, and returns the same expiresAt to all',
  { timeout: 60_000 },
  async () => {
    const license = await world.license({ durationDays: 30, maxMachines: 1_000 })
    await followed()
    const fromMs = Date.now()
    const replies = await Promise.all(Array.from({ length: 1_000 }, (_, i) => check(i, license.key, `machine ${i}`)))
    // A check whose claim waits too long receives 503, although the claim may have succeeded. The check succeeds when it is sent again.
    await followed()
    const retried = await Promise.all(
      replies.map(async (reply, i) => (reply.status === 503 ? check(i, license.key, `machine ${i}`) : reply)),
    )
    const { expiresAt, starts } = await endOf(license.id)
    expect(starts).toBe(1)
    expect(new Set(retried.map(({ text }) => text))).toEqual(
      new Set([
        `{"valid":true,"status":200,"message":"The license is valid.","code":"VALID","expiresAt":"${expiresAt}"}`,
      ]),
    )
    const days = (Date.parse(expiresAt ?? '') - fromMs) / 86_400_000
    expect(days).toBeGreaterThan(29.99)
    expect(days).toBeLessThan(30.01)
  },
)

test('does not start a term for an excluded or blacklisted check, or without a machine id', async () => {
  const license = await world.license({ durationDays: 30, maxMachines: 5 })
  const { pool } = world.database
  const rule = { organizationId: world.organizationId, licenseId: license.id, type: 'HWID' } as const
  await insertRule(pool, { ...rule, kind: 'EXCLUSION', value: 'ours' })
  await insertRule(pool, { ...rule, kind: 'BLACKLIST', value: 'theirs' })
  await followed()
  expect((await check(0, license.key, 'ours')).body).toMatchObject({ code: 'VALID', expiresAt: null })
  expect((await check(1, license.key, 'theirs')).body).toMatchObject({ code: 'BLACKLISTED' })
  expect((await check(2, license.key)).body).toMatchObject({ code: 'FINGERPRINT_REQUIRED' })
  expect(await endOf(license.id)).toEqual({ expiresAt: null, starts: 0 })
})

test('returns 503 without Postgres for a check that would start a term, and decides other checks from memory', async () => {
  const started = await world.license({ durationDays: 1, maxMachines: null })
  const waiting = await world.license({ durationDays: 1, maxMachines: null })
  await followed()
  expect((await check(2, started.key)).status).toBe(200)
  const { expiresAt } = await endOf(started.id)
  await followed()
  proxy.refuse()
  expect((await check(2, started.key)).body).toMatchObject({ code: 'VALID', expiresAt })
  expect((await check(2, waiting.key)).body).toMatchObject({ status: 503, code: 'UNAVAILABLE' })
  expect(await endOf(waiting.id)).toEqual({ expiresAt: null, starts: 0 })
  proxy.heal()
  await until(async () => (await check(2, waiting.key)).status === 200)
  expect((await endOf(waiting.id)).starts).toBe(1)
})
