/**
 * Tests that counts are exact: each check with a response is counted once, even if connections to Postgres break. A killed
 * validator loses at most the usage since its last flush, and a stopped validator loses none (docs/api.md#d5).
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import {
  insertApiKey,
  insertLicense,
  insertMachine,
  insertOrganization,
  insertRule,
  type Proxy,
  random,
  startProxy,
} from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, untilReady } from '../faults/support/children.ts'
import { check, send } from '../faults/support/client.ts'
import { byLength, figure, seedOr } from '../faults/support/length.ts'
import { createPostgres, openPool, type TestPostgres, through } from '../faults/support/postgres.ts'

const CUTS = byLength(60, 1_000)
const SEED = seedOr(4_812)

let postgres: TestPostgres
let proxy: Proxy
let pool: ReturnType<typeof openPool>
let agent: Agent

beforeAll(async () => {
  postgres = await createPostgres()
  proxy = await startProxy(postgres.port)
  pool = openPool(postgres.url)
  agent = new Agent({ keepAlive: true, maxSockets: 16 })
})
afterAll(async () => {
  await endChildren()
  agent.destroy()
  await proxy.close()
  await pool.end()
  await postgres.remove()
})

interface World {
  readonly organizationId: string
  readonly secret: string
  readonly license: string
  readonly full: string
  readonly blacklist: string
  readonly exclusion: string
}
let world: World

/** Creates an organization per test, so that counts are separate. */
beforeEach(async () => {
  const organizationId = await insertOrganization(pool)
  const { secret } = await insertApiKey(pool, { organizationId })
  const license = await insertLicense(pool, { organizationId, maxMachines: 100_000 })
  const full = await insertLicense(pool, { organizationId, maxMachines: 1 })
  await insertMachine(pool, { licenseId: full.id, machineId: 'inside' })
  await insertMachine(pool, { licenseId: license.id, machineId: 'known' })
  const blacklist = await insertRule(pool, { organizationId, type: 'HWID', value: 'refused' })
  const exclusion = await insertRule(pool, { organizationId, kind: 'EXCLUSION', type: 'HWID', value: 'excluded' })
  world = { organizationId, secret, license: license.key, full: full.key, blacklist, exclusion }
})

/** The number of verdicts by code; excluded checks are counted separately. */
type Answered = Map<string, number>

/** Sends checks of all kinds, 16 at a time, until `stop` is called. */
function hammer(validator: Service): { stop: () => Promise<Answered>; answeredAtMs: number[] } {
  const answered: Answered = new Map()
  const answeredAtMs: number[] = []
  const state = { isOver: false }
  const { license, full, secret } = world
  const work = Array.from({ length: 16 }, async (_, worker) => {
    const dice = random(SEED + worker)
    for (let n = 0; !state.isOver; n++) {
      const fields = dice.pick([
        { license, fingerprint: 'known' },
        { license, fingerprint: `new ${worker} ${n}` },
        { license, fingerprint: 'refused' },
        { license, fingerprint: 'excluded' },
        { license },
        { license: full, fingerprint: `pirate ${dice.int(50)}` },
        { license: `no such key ${n}`, fingerprint: 'known' },
      ])
      const { code, status } = await check(validator.port, secret, fields, agent)
      if (status !== 200 && status !== 400) continue
      const name = fields.fingerprint === 'excluded' ? 'excluded' : code
      answered.set(name, (answered.get(name) ?? 0) + 1)
      if (name !== 'excluded') answeredAtMs.push(performance.now())
      await sleep(1)
    }
  })
  const stop = async (): Promise<Answered> => {
    state.isOver = true
    await Promise.all(work)
    return answered
  }
  return { stop, answeredAtMs }
}

const start = async (): Promise<Service> => {
  const validator = await startValidator(through(postgres.validatorUrl, proxy.port), {
    LOG_LEVEL: 'error',
    VALIDATOR_WORKERS: '2',
  })
  await untilReady(validator)
  return validator
}

/** Returns the counts of one table for the organization, by code. */
async function sums(from: string): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ code: string; n: number }>(
    `select code, sum(count)::int as n from ${from} where organization_id = $1 and code is not null group by code`,
    [world.organizationId],
  )
  return new Map(rows.map(({ code, n }) => [code, n]))
}

async function matchesOf(rule: string): Promise<number> {
  const counts = 'select match_count::int as n from access_rule_counters where rule_id = $1'
  return (await pool.query<{ n: number }>(counts, [rule])).rows[0]?.n ?? -1
}

/** Asserts that the counts in every table equal those of the responses. */
async function expectExact(answered: Answered): Promise<void> {
  const excluded = answered.get('excluded') ?? 0
  const ordinary = new Map([...answered].filter(([code]) => code !== 'excluded'))
  expect(await sums('check_counts')).toEqual(ordinary)
  const licenseCounts = new Map([...ordinary].filter(([code]) => code !== 'NOT_FOUND'))
  expect(await sums('activity')).toEqual(licenseCounts)
  expect(await matchesOf(world.blacklist)).toBe(ordinary.get('BLACKLISTED'))
  expect(await matchesOf(world.exclusion)).toBe(excluded)
  const alerts = await pool.query('select count::int from alerts where organization_id = $1', [world.organizationId])
  expect(alerts.rows).toEqual([{ count: ordinary.get('TOO_MANY_MACHINES') }])
  const stray = `select from activity where organization_id = $1 and machine_id = 'excluded'`
  expect((await pool.query(stray, [world.organizationId])).rows).toEqual([])
}

test(
  `counts every check once despite ${CUTS} cut connections and a stop during a cut`,
  {
    timeout: byLength(90_000, 900_000),
  },
  async () => {
    const validator = await start()
    const load = hammer(validator)
    const before = proxy.connections
    const cutter = { isDone: false }
    const cutting = (async () => {
      for (; !cutter.isDone; await sleep(100)) proxy.cut()
    })()
    while (proxy.connections - before < CUTS) await sleep(50)
    cutter.isDone = true
    await cutting
    // Writes fail when the stop begins, and the stopping validator retries them.
    proxy.refuse()
    const answered = await load.stop()
    validator.signal('SIGTERM')
    await sleep(2_500)
    proxy.heal()
    expect(await validator.exit).toBe(0)
    await expectExact(answered)
    expect([...answered.keys()].toSorted()).toEqual([
      'BLACKLISTED',
      'FINGERPRINT_REQUIRED',
      'NOT_FOUND',
      'TOO_MANY_MACHINES',
      'VALID',
      'excluded',
    ])
    const checks = [...answered.values()].reduce((sum, count) => sum + count, 0)
    figure('counters through cuts', { connections: proxy.connections - before, checks, missing: 0 })
  },
)

test('counts every check of a validator that is stopped under load', { timeout: 60_000 }, async () => {
  const validator = await start()
  const load = hammer(validator)
  await sleep(byLength(1_500, 5_000))
  validator.signal('SIGTERM')
  await sleep(300) // The validator drains and still responds.
  const answered = await load.stop()
  expect(await validator.exit).toBe(0)
  await expectExact(answered)
})

test(
  'loses at most the usage since the last flush on SIGKILL and counts no check twice',
  {
    timeout: byLength(60_000, 300_000),
  },
  async () => {
    for (let round = 0; round < byLength(1, 20); round++) {
      const validator = await start()
      const all = async (): Promise<number> => [...(await sums('check_counts')).values()].reduce((sum, n) => sum + n, 0)
      const countedBefore = await all()
      const load = hammer(validator)
      /** The number of responses before each observed flush. */
      const answeredBefore: number[] = []
      let last = countedBefore
      // The kill follows after about six flushes, each round at a different moment between two flushes.
      for (let turn = 0; turn < 600 + 13 * round; turn++) {
        const answered = load.answeredAtMs.length
        const seen = await all()
        if (seen !== last) answeredBefore.push(answered)
        last = seen
        await sleep(10)
      }
      validator.signal('SIGKILL')
      const killedMs = performance.now()
      await validator.exit
      await load.stop()
      const counted = (await all()) - countedBefore
      const times = load.answeredAtMs.toSorted((a, b) => a - b)
      const missing = times.length - counted
      expect(missing).toBeGreaterThanOrEqual(0)
      // The missing checks are those of the last responses before the kill.
      const spanMs = missing === 0 ? 0 : killedMs - (times[counted] ?? killedMs)
      const flushes = answeredBefore.length
      figure('kill -9', { answered: times.length, missing, 'of the last ms': Math.round(spanMs), flushes })
      // A check before a flush is written by the next flush, or by the following one if its record was still in the ring.
      expect(counted).toBeGreaterThanOrEqual(answeredBefore.at(-3) ?? Infinity)
    }
  },
)

test('exports the number of waiting entries and writes every batch once', async () => {
  const validator = await start()
  const { secret, license } = world
  for (let i = 0; i < 20; i++) await check(validator.port, secret, { license, fingerprint: 'known' }, agent)
  const { text } = await send(validator.adminPort, '/metrics', { method: 'GET' })
  expect(text).toMatch(/^keyward_records_waiting \d+$/m)
  for (const reason of ['activity', 'analytics', 'rules', 'machines'])
    expect(text).toContain(`keyward_records_dropped_total{reason="${reason}"} 0`)
  expect(await validator.stop()).toBe(0)
  expect((await sums('check_counts')).get('VALID')).toBe(20)
})
