/**
 * Compares batches (docs/api.md#h13) with single checks. Two organizations have equal licenses and rules. The checks of one
 * organization are sent singly, and those of the other organization in batches. Responses, slots and recorded usage must be
 * equal.
 */

import { Agent } from 'node:http'
import { isDeepStrictEqual } from 'node:util'

import {
  insertApiKey,
  insertCustomer,
  insertMachine,
  insertOrganization,
  insertProduct,
  insertRule,
  random,
  type Random,
} from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const BATCH = '/api/v2/license/validate/batch'
const WORLDS = 6
const agent = new Agent({ keepAlive: true, maxSockets: 20 })
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.validatorUrl)
})
afterAll(async () => {
  agent.destroy()
  await validator.close()
  await world.database.drop()
})

const resultsOf = (reply: Reply): unknown[] => z.object({ results: z.array(z.unknown()) }).parse(reply.body).results
const codeOf = (result: unknown): string => z.looseObject({ code: z.string() }).parse(result).code
const batch = (checks: unknown, headers: Record<string, string> = {}, secret = world.secret): Promise<Reply> =>
  send(validator.port, BATCH, { body: { checks }, secret, headers, agent })
const single = (body: unknown, headers: Record<string, string> = {}, secret = world.secret): Promise<Reply> =>
  send(validator.port, V2, { body, secret, headers, agent })

/** Resolves when the validator has applied all rows inserted so far. */
async function followed(): Promise<void> {
  const { key } = await world.license({ status: 'suspended' })
  await until(async () => (await single({ license: key })).text.includes('SUSPENDED'))
}

async function query(text: string, values: unknown[]): Promise<unknown[]> {
  return (await world.database.pool.query<Record<string, unknown>>(text, values)).rows
}

interface TestOrganization {
  id: string
  secret: string
  boundSecret: string
}

const MACHINES = ['m-0', 'm-1', 'm-2', 'm-3', 'known', 'blocked', 'free', 'watched']
const KEYS = Array.from({ length: 10 }, (_, i) => `LICENSE-${i}`)

/** Inserts a random world. The same seed yields the same world in every organization. */
async function insertTestOrganization(seed: number): Promise<TestOrganization> {
  const from = random(seed)
  const { pool } = world.database
  const id = await insertOrganization(pool)
  const { secret } = await insertApiKey(pool, { organizationId: id })
  const products = [
    await insertProduct(pool, { organizationId: id, name: 'one', entitlements: { seats: 5 } }),
    await insertProduct(pool, { organizationId: id, name: 'two' }),
  ]
  const { secret: boundSecret } = await insertApiKey(pool, { organizationId: id, productId: products[0] ?? '' })
  const customerId = await insertCustomer(pool, { organizationId: id })
  const licenses: string[] = []
  for (const key of KEYS) {
    const policy = from.pick([
      { expiresAt: from.pick([null, new Date('2001-01-01'), new Date('2100-02-03T04:05:06.789Z')]) },
      { leaseSeconds: 3_600 },
      {},
    ])
    const license = await world.license({
      organizationId: id,
      productId: from.pick(products),
      customerId,
      key,
      status: from.pick(['active', 'active', 'active', 'suspended', 'revoked']),
      maxMachines: from.pick([1, 2, 3, null]),
      ...policy,
      // Each world contains an expired license.
      ...(key === KEYS[0] ? { status: 'active', leaseSeconds: null, expiresAt: new Date('2001-01-01') } : {}),
      ...(from.chance(0.3) ? { entitlements: { edition: key } } : {}),
    })
    licenses.push(license.id)
    if (from.chance(0.6)) await insertMachine(pool, { licenseId: license.id, machineId: 'known' })
  }
  await insertRules(from, id, products, licenses)
  return { id, secret, boundSecret }
}

async function insertRules(
  from: Random,
  organizationId: string,
  products: readonly string[],
  licenses: readonly string[],
): Promise<void> {
  const values = { IP: ['203.0.113.0/24', '198.51.100.7'], HWID: MACHINES.slice(4), COUNTRY: ['DE'] } as const
  for (let i = 0; i < 6; i++) {
    const type = from.pick(['IP', 'HWID', 'HWID', 'COUNTRY'] as const)
    const kind = type === 'COUNTRY' ? 'BLACKLIST' : from.pick(['BLACKLIST', 'EXCLUSION'] as const)
    await insertRule(world.database.pool, {
      organizationId,
      type,
      kind,
      value: from.pick<string>(values[type]),
      ...from.pick([{}, { productId: from.pick(products) }, { licenseId: from.pick(licenses) }]),
      mode: from.chance(0.4) ? 'MONITOR' : 'ENFORCE',
      allowSuspendedOrExpired: kind === 'EXCLUSION' && from.chance(0.5),
    }).catch(ignoreDuplicate)
  }
}

/** Ignores the error for a random rule that duplicates an earlier one. Both organizations have the same duplicates. */
function ignoreDuplicate(error: unknown): void {
  if (!(error instanceof Error) || !error.message.includes('duplicate key')) throw error
}

function randomCheck(from: Random): unknown {
  const license = from.chance(0.95) ? from.pick(KEYS) : from.pick(['unknown', 'k'.repeat(200)])
  if (from.chance(0.05)) return from.pick([{}, null, [], 7, { license: 7 }, { license, fingerprint: 'm'.repeat(600) }])
  const machine = from.chance(0.1) ? {} : { [from.pick(['fingerprint', 'hwid'])]: from.pick(MACHINES) }
  const include = from.chance(0.2) ? { include: ['entitlements'] } : {}
  return { license, ...machine, ...include, ...(from.chance(0.1) ? { other: 'ignored: "é"' } : {}) }
}

/** Returns the slots and usage that checks have stored for an organization, without ids. */
async function stored(organizationId: string): Promise<unknown> {
  const statements = {
    machines: `select l.key, convert_from(m.machine_id, 'UTF8') as machine
      from machines m join licenses l on l.id = m.license_id where l.organization_id = $1 order by 1, 2`,
    slots: `select l.key, s.used from license_slots s join licenses l on l.id = s.license_id
      where l.organization_id = $1 order by 1`,
    counts: `select p.name, c.code, sum(c.count)::int as count from check_counts c left join products p on p.id = c.product_id
      where c.organization_id = $1 group by 1, 2 order by 1, 2`,
    activity: `select l.key, a.code, convert_from(a.machine_id, 'UTF8') as machine, sum(a.count)::int as count
      from activity a join licenses l on l.id = a.license_id
      where l.organization_id = $1 and a.type = 'CHECK' group by 1, 2, 3 order by 1, 2, 3`,
    rules: `select r.kind, r.type, convert_from(r.value, 'UTF8') as value, r.scope, r.mode, l.key, c.match_count::int as count
      from access_rule_counters c join access_rules r on r.id = c.rule_id left join licenses l on l.id = r.license_id
      where r.organization_id = $1 order by 1, 2, 3, 4, 5, 6, 7`,
    alerts: `select l.key, a.kind, a.count::int as count from alerts a join licenses l on l.id = a.license_id
      where l.organization_id = $1 order by 1`,
  }
  const entries = Object.entries(statements).map(
    async ([name, text]) => [name, await query(text, [organizationId])] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

/** Returns the number of the organization's checks with unknown keys. */
async function notFoundOf(organizationId: string): Promise<number> {
  const text = `select coalesce(sum(count), 0)::int as n from check_counts where organization_id = $1 and code = 'NOT_FOUND'`
  return z.tuple([z.object({ n: z.number() })]).parse(await query(text, [organizationId]))[0].n
}

/**
 * Sends random checks singly for one organization, and in batches for the other organization. Returns the codes. Returns null
 * when a claim took too long, because the slots of the organizations can differ then.
 */
async function compare(seed: number): Promise<string[] | null> {
  const [one, other] = await Promise.all([insertTestOrganization(seed), insertTestOrganization(seed)])
  await followed()
  const from = random(1_000 + seed)
  const codes: string[] = []
  for (let round = 0; round < 4; round++) {
    const headers = {
      'x-forwarded-for': from.pick(['203.0.113.9', '198.51.100.7', '192.0.2.1']),
      'x-country': from.pick(['DE', 'FR', '']),
    }
    const secretOf = from.chance(0.2)
      ? (organization: TestOrganization) => organization.boundSecret
      : (organization: TestOrganization) => organization.secret
    const checks = Array.from({ length: 1 + from.int(30) }, () => randomCheck(from))
    const expected: unknown[] = []
    for (const check of checks) {
      const { text } = await single(check, headers, secretOf(one))
      // Errors of a batch call its part a check.
      expected.push(JSON.parse(text.replace('"message":"The body ', '"message":"The check ')))
    }
    const reply = await batch(checks, headers, secretOf(other))
    expect(reply.status).toBe(200)
    if ([...expected, ...resultsOf(reply)].some((result) => codeOf(result) === 'UNAVAILABLE')) return null
    expect(resultsOf(reply), `world ${seed}`).toEqual(expected)
    codes.push(...expected.map(codeOf))
  }
  // When these checks have been counted, the usage of all earlier checks has been written.
  await single({ license: 'the last' }, {}, one.secret)
  await batch([{ license: 'the last' }], {}, other.secret)
  const last = codes.filter((code) => code === 'NOT_FOUND').length + 1
  for (const { id } of [one, other]) await until(async () => (await notFoundOf(id)) === last)
  const compared = async (): Promise<unknown> => {
    const [a, b] = await Promise.all([stored(one.id), stored(other.id)])
    return isDeepStrictEqual(a, b) ? 'equal' : [a, b]
  }
  await expect.poll(compared, { timeout: 10_000, message: `world ${seed}` }).toBe('equal')
  return codes
}

test(
  `yields the same responses, slots and usage as single checks in ${WORLDS} random worlds`,
  { timeout: 120_000 },
  async () => {
    const untilCompared = async (seed: number): Promise<string[]> =>
      (await compare(seed)) ?? (await untilCompared(seed))
    const codes = (await Promise.all(Array.from({ length: WORLDS }, (_, i) => untilCompared(i + 1)))).flat()
    const wanted = ['VALID', 'NOT_FOUND', 'BLACKLISTED', 'REVOKED', 'SUSPENDED', 'EXPIRED', 'FINGERPRINT_REQUIRED']
    for (const code of [...wanted, 'TOO_MANY_MACHINES', 'INVALID_REQUEST'])
      expect(codes.filter((each) => each === code).length, code).toBeGreaterThan(3)
  },
)
