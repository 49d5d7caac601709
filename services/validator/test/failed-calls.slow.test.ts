/**
 * Breaks the connection of a validator to Postgres at each of its first calls in turn, before and after Postgres executes the call: during
 * a start, a claim and a write of usage. Verdicts, slots and counters are those of before the call, or those of after it.
 */

import { type CallProxy, insertRule, startCallProxy } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from './harness.ts'

const V2 = '/api/v2/license/validate'
/** The calls of the feed and of other connections are counted too, so a call under test may be one of the later calls. */
const CALLS = Array.from({ length: 8 }, (_, i) => i + 1)
const TIMES = ['before', 'after'] as const
const CASES = TIMES.flatMap((when) => CALLS.map((n) => ({ when, n })))

let world: World
let proxy: CallProxy

beforeAll(async () => {
  world = await createWorld()
  proxy = await startCallProxy(world.database.validatorUrl)
})
afterAll(async () => {
  await proxy.close()
  await world.database.drop()
})

const check = (validator: RunningValidator, license: string, fingerprint: string): Promise<Reply> =>
  send(validator.port, V2, { body: { license, fingerprint }, secret: world.secret })

async function codeOf(reply: Promise<Reply>): Promise<unknown> {
  const { body } = await reply
  return typeof body === 'object' && body !== null && 'code' in body ? body.code : null
}

async function usedOf(licenseId: string): Promise<number> {
  const { rows } = await world.database.pool.query<{ used: number }>(
    'select used from license_slots where license_id = $1',
    [licenseId],
  )
  return rows[0]?.used ?? 0
}

async function startOrStartAgain(): Promise<RunningValidator> {
  try {
    return await startLoaded(proxy.url)
  } catch {
    // A supervisor starts the process again after a failed start.
    return startLoaded(proxy.url)
  }
}

test('decides by all rows after a start in which any call failed', { timeout: 600_000 }, async () => {
  const [valid, blocked] = [await world.license({ maxMachines: null }), await world.license({ maxMachines: null })]
  await insertRule(world.database.pool, {
    organizationId: world.organizationId,
    licenseId: blocked.id,
    type: 'HWID',
    value: 'm',
  })
  /** Returns whether the start had so many calls that one of them failed. */
  const startWithout = async (
    n: number,
    when: (typeof TIMES)[number],
    of?: Parameters<CallProxy['arm']>[2],
  ): Promise<boolean> => {
    proxy.arm(n, when, of)
    const validator = await startOrStartAgain()
    const codes = [await codeOf(check(validator, valid.key, 'm')), await codeOf(check(validator, blocked.key, 'm'))]
    const hasBroken = proxy.disarm()
    expect([when, n, of, ...codes]).toEqual([when, n, of, 'VALID', 'BLACKLISTED'])
    await validator.close()
    return hasBroken
  }
  for (const { when, n } of CASES) expect(await startWithout(n, when)).toBe(true)
  // The load only reads, so a call that was executed in vain has no effect. It has one call for each of 8 tables, among others.
  let calls = 0
  while (await startWithout(calls + 1, 'before', { application: 'keyward validator load' })) calls++
  expect(calls).toBeGreaterThan(8)
})

test(
  'claims one slot for a machine whose claim failed, before and after Postgres executed it',
  { timeout: 300_000 },
  async () => {
    const validator = await startLoaded(proxy.url)
    for (const when of TIMES) {
      const license = await world.license({ maxMachines: 1 })
      await until(async () => (await codeOf(check(validator, license.key, ''))) === 'FINGERPRINT_REQUIRED')
      proxy.arm(1, when, { application: 'keyward validator slots' })
      const first = await codeOf(check(validator, license.key, 'm1'))
      expect(proxy.disarm()).toBe(true)
      expect([when, first, await usedOf(license.id)]).toEqual([when, 'UNAVAILABLE', when === 'after' ? 1 : 0])
      await until(async () => (await codeOf(check(validator, license.key, 'm1'))) === 'VALID')
      expect(await usedOf(license.id)).toBe(1)
      await until(async () => (await codeOf(check(validator, license.key, 'm2'))) === 'TOO_MANY_MACHINES')
      expect(await usedOf(license.id)).toBe(1)
    }
    await validator.close()
  },
)

test('writes usage exactly once, whichever call of the write failed', { timeout: 300_000 }, async () => {
  const validator = await startLoaded(proxy.url)
  const { pool } = world.database
  for (const { when, n } of CASES) {
    const license = await world.license({ maxMachines: null })
    const rule = { organizationId: world.organizationId, licenseId: license.id, mode: 'MONITOR' } as const
    const ruleId = await insertRule(pool, { ...rule, type: 'HWID', value: 'm' })
    const matches = async () => {
      const { rows } = await pool.query<{ count: number }>(
        'select match_count::integer as count from access_rule_counters where rule_id = $1',
        [ruleId],
      )
      return rows[0]?.count ?? 0
    }
    const checks = async () => {
      const { rows } = await pool.query<{ count: number }>(
        `select coalesce(sum(count), 0)::integer as count from activity where license_id = $1 and type = 'CHECK'`,
        [license.id],
      )
      return rows[0]?.count ?? 0
    }
    // The index contains the rule when it contains a license that was inserted later.
    const { key: later } = await world.license({ status: 'suspended' })
    await until(async () => (await codeOf(check(validator, later, 'm'))) === 'SUSPENDED')
    proxy.arm(n, when)
    for (let i = 0; i < 5; i++) await check(validator, license.key, 'm')
    await until(async () => (await checks()) >= 5 && (await matches()) >= 5)
    proxy.disarm()
    // A later write of the same validator follows all earlier ones.
    await check(validator, license.key, 'm')
    await until(async () => (await checks()) >= 6 && (await matches()) >= 6)
    expect([when, n, await checks(), await matches()]).toEqual([when, n, 6, 6])
  }
  await validator.close()
})
