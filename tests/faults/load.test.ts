import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { Haproxy, hasHaproxy } from './support/balancer.ts'
import { endChildren, metric, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, type Reply } from './support/client.ts'
import { byLength, figure } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

/** Measures the number of statements that checks cause, and the responses that callers receive while a validator stops. */

const AGENT = new Agent({ keepAlive: true, maxSockets: 24 })
const MACHINES = byLength(2_000, 100_000)
const PER_LICENSE = 100

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let organizationId: string
let secret: string

beforeAll(async () => {
  postgres = await createPostgres({
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track': 'top',
    max_wal_size: '1GB',
  })
  pool = openPool(postgres.url)
  await pool.query('create extension pg_stat_statements')
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
})
afterAll(async () => {
  AGENT.destroy()
  await endChildren()
  await pool.end()
  await postgres.remove()
})

const claims = async (): Promise<number> => {
  const { rows } = await pool.query<{ calls: number }>(
    `select coalesce(sum(calls), 0)::int as calls from pg_stat_statements where query like '%claim_slots(%'`,
  )
  return rows[0]?.calls ?? 0
}

/** Runs the calls, 24 at a time. Returns the number of responses by code. */
async function askAll(calls: readonly (() => Promise<Reply>)[]): Promise<Map<string, number>> {
  const codes = new Map<string, number>()
  const queue = calls.values()
  const work = async (): Promise<void> => {
    for (const call of queue) {
      const { code } = await call()
      codes.set(code, (codes.get(code) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 24 }, work))
  return codes
}

const ask = (validator: Pick<Service, 'port'>, license: string, fingerprint: string): Promise<Reply> =>
  check(validator.port, secret, { license, fingerprint }, AGENT)

test(`checks of ${MACHINES} known machines after a restart cause no claim and no statement per machine`, async () => {
  const { productId, customerId } = await insertLicense(pool, { organizationId })
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, 'herd-' || i, 'PERPETUAL', $4::int from generate_series(0, $5::int) i`,
    [organizationId, productId, customerId, PER_LICENSE, MACHINES / PER_LICENSE - 1],
  )
  await pool.query(
    `insert into machines (id, license_id, machine_id) select gen_random_uuid(), l.id, convert_to('m' || i, 'UTF8')
     from licenses l, generate_series(1, $1::int) i where l.key like 'herd-%'`,
    [PER_LICENSE],
  )
  const validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
  const before = await claims()
  const startedMs = performance.now()
  const codes = await askAll(
    Array.from(
      { length: MACHINES },
      (_, i) => () => ask(validator, `herd-${Math.floor(i / PER_LICENSE)}`, `m${1 + (i % PER_LICENSE)}`),
    ),
  )
  figure('A herd of known machines after a restart', {
    machines: MACHINES,
    claims: (await claims()) - before,
    'within ms': Math.round(performance.now() - startedMs),
  })
  expect(Object.fromEntries(codes)).toEqual({ VALID: MACHINES })
  expect(await claims()).toBe(before)
  expect(await metric(validator, 'keyward_claim_statement_seconds_count')).toBe(0)
  await validator.stop()
})

test('checks of a full license cause a few statements per second, at any rate of checks', async () => {
  const full = await insertLicense(pool, { organizationId, maxMachines: 1 })
  const validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
  await until(async () => (await ask(validator, full.key, 'owner')).code === 'VALID')
  const before = await claims()
  const startedMs = performance.now()
  const codes = await askAll(
    Array.from({ length: byLength(3_000, 100_000) }, (_, i) => () => ask(validator, full.key, `pirate ${i}`)),
  )
  const seconds = (performance.now() - startedMs) / 1_000
  const statements = (await claims()) - before
  figure('A pirate at a full license', {
    checks: [...codes.values()].reduce((a, b) => a + b, 0),
    seconds: seconds.toFixed(1),
    statements,
  })
  expect([...codes.keys()]).toEqual(['TOO_MANY_MACHINES'])
  expect(statements).toBeLessThan(8 * seconds + 8)
  await validator.stop()
})

test.skipIf(!hasHaproxy)(
  'SIGTERM under load behind a balancer fails no request and loses no count (needs haproxy)',
  async () => {
    const license = await insertLicense(pool, { organizationId, maxMachines: 100_000 })
    const counted = async (): Promise<number> => {
      const { rows } = await pool.query<{ n: number }>('select coalesce(sum(count), 0)::int as n from check_counts')
      return rows[0]?.n ?? 0
    }
    const before = await counted()
    const pair = await Promise.all([startValidator(postgres.validatorUrl), startValidator(postgres.validatorUrl)])
    await untilReady(...pair)
    const balancer = new Haproxy()
    await balancer.start(pair)
    const state = { isOver: false, answered: 0, failed: [] as string[] }
    const clients = Array.from({ length: 12 }, async (_, client) => {
      for (let i = 0; !state.isOver; i++) {
        // Sends checks of known and new machines on keep-alive connections.
        const machine = i % 5 === 0 ? `new ${client} ${i}` : 'known'
        let reply = await ask(balancer, license.key, machine)
        // On a busy host, Postgres may take longer than a claim waits. Like an app, the client then repeats the check.
        const repeats = machine === 'known' ? 0 : 3
        for (let n = 0; n < repeats && reply.status === 503; n++) reply = await ask(balancer, license.key, machine)
        if (reply.code === 'VALID') state.answered++
        else state.failed.push(`${reply.status} ${reply.code}`)
      }
    })
    await sleep(1_000)
    const tookMs: number[] = []
    for (const one of pair.slice(0, 1)) {
      const startedMs = performance.now()
      expect(await one.stop()).toBe(0)
      tookMs.push(performance.now() - startedMs)
    }
    await sleep(500)
    state.isOver = true
    await Promise.all(clients)
    await balancer.stop()
    expect(await pair[1].stop()).toBe(0)
    figure('SIGTERM under load behind a balancer', {
      answered: state.answered,
      failed: state.failed.length,
      'stopped after ms': Math.round(tookMs[0] ?? 0),
    })
    expect(state.failed).toEqual([])
    expect((await counted()) - before).toBe(state.answered)
    expect(Math.max(...tookMs)).toBeLessThan(10_000)
  },
)
