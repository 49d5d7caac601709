/** Tests leases in real time (docs/api.md#l4): the machine limit holds under every fault, and renewals cost Postgres few statements. */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, random, VALIDATOR_LOGIN } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check } from './support/client.ts'
import { LeaseFleet, type Member, type Pace } from './support/lease-fleet.ts'
import {
  freeTimes,
  keepLedger,
  mostAtOnce,
  readHolds,
  type ValidResponse,
  wrongResponses,
} from './support/lease-ledger.ts'
import { byLength, figure, quantiles, seedOr } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

const SEATS = 5
const MACHINES = 200
const MINUTES = Number(process.env['KEYWARD_MINUTES'] ?? 30)

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let organizationId: string
let secret: string

beforeAll(async () => {
  postgres = await createPostgres({ shared_preload_libraries: 'pg_stat_statements' })
  pool = openPool(postgres.url)
  await pool.query('create extension pg_stat_statements')
  // The short form uses leases of a few seconds.
  await pool.query('alter table licenses drop constraint licenses_lease_seconds_check')
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

interface Seen {
  valid: ValidResponse[]
  codes: Record<string, number>
}

const LEASE_S = byLength(2, 60)
const CHECK_EVERY_MS = byLength(80, 600)
const PACE: Pace = byLength(
  { between: 1_200, brief: 400, long: 2_500 },
  { between: 60_000, brief: 3_000, long: 120_000 },
)

/** Simulates a machine that runs the app with interruptions. The machine sends most of its checks to one validator. */
async function live(machine: number, license: string, members: readonly Member[], seen: Seen, signal: AbortSignal) {
  const source = random(seedOr(1) * 1_000 + machine)
  const rest = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal }).catch(() => undefined)
  const fingerprint = `machine ${machine}`
  const leases = (most: number): number => source.int(most * LEASE_S * 1_000)
  await rest(leases(1))
  while (!signal.aborted) {
    const endMs = performance.now() + leases(4)
    while (!signal.aborted && performance.now() < endMs) {
      const member = source.chance(0.8) ? members[machine % 3]! : source.pick(members)
      const { suspended } = member
      const fromMs = Date.now()
      const reply = await check(member.service.port, secret, { license, fingerprint })
      const code = reply.status === 0 ? 'no response' : reply.code
      seen.codes[code] = (seen.codes[code] ?? 0) + 1
      if (code === 'VALID') seen.valid.push({ machine: fingerprint, fromMs, untilMs: Date.now() + 1, suspended })
      await rest(CHECK_EVERY_MS + source.int(CHECK_EVERY_MS))
    }
    await rest(leases(4))
  }
}

test(
  'returns VALID to at most 5 of 200 machines at one instant, through three validators',
  { timeout: (MINUTES + 5) * 60_000 },
  async () => {
    const license = await insertLicense(pool, { organizationId, maxMachines: SEATS, leaseSeconds: LEASE_S })
    await keepLedger(pool)
    const fleet = new LeaseFleet(postgres, random(seedOr(1)))
    await fleet.start()
    const seen: Seen = { valid: [], codes: {} }
    const [faults, over] = [new AbortController(), new AbortController()]
    const machines = Array.from({ length: MACHINES }, (_, i) => live(i, license.key, fleet.members, seen, over.signal))
    const disturbing = fleet.disturb(PACE, faults.signal)
    await sleep(byLength(7_000, MINUTES * 60_000))
    faults.abort()
    await disturbing
    // After the end of all faults, machines receive slots again.
    const healedMs = Date.now()
    await until(() => seen.valid.some(({ fromMs }) => fromMs > healedMs))
    over.abort()
    await Promise.all(machines)
    await fleet.end()

    const holds = await readHolds(pool)
    expect(mostAtOnce(holds)).toBe(SEATS)
    expect(wrongResponses(seen.valid, holds)).toEqual([])
    expect(holds.size).toBeGreaterThan(SEATS)
    expect(seen.codes['TOO_MANY_MACHINES']).toBeGreaterThan(MACHINES)
    const free = freeTimes(holds, SEATS, fleet.disturbed)
    figure(`${MACHINES} machines race for ${SEATS} seats with leases of ${LEASE_S} s`, {
      ...seen.codes,
      'machines that had a seat': holds.size,
      'seats given': [...holds.values()].flat().length,
      'most at once': mostAtOnce(holds),
      ...fleet.counts,
    })
    const { p50, p99, most } = quantiles(free)
    figure('a free seat is taken after ms, without a fault', { seats: free.length, p50, p99, most })
  },
)

/** Returns the totals of statements that claim slots, of all statements of validators, of WAL bytes, and of updates in `machines`. */
async function statements(): Promise<{ claims: number; all: number; walBytes: number; renewed: number }> {
  const { rows } = await pool.query<{ claims: number; all: number; wal: number; renewed: number }>(
    `select coalesce(sum(calls) filter (where query like '%claim_slots(%'), 0)::float8 as claims, sum(calls)::float8 as all,
       (pg_current_wal_lsn() - '0/0')::float8 as wal,
       (select n_tup_upd from pg_stat_user_tables where relname = 'machines')::float8 as renewed
     from pg_stat_statements s join pg_roles r on r.oid = s.userid where r.rolname = $1`,
    [VALIDATOR_LOGIN.user],
  )
  const { claims = 0, all = 0, wal = 0, renewed = 0 } = rows[0] ?? {}
  return { claims, all, walBytes: wal, renewed }
}

const CHECKED_EVERY_MS = byLength(0, 120_000)
const MEASURED_MINUTES = 10
const ORGANIZATIONS = byLength(2, 10)
const LICENSES = byLength(5, 100)
const MACHINES_OF_LICENSE = byLength(20, 100)

interface Leased {
  secret: string
  license: string
  fingerprint: string
}

/** Creates licenses with leases of 10 minutes, and returns all machines in random order. */
async function leasedMachines(): Promise<Leased[]> {
  const machines: Leased[] = []
  for (let i = 0; i < ORGANIZATIONS; i++) {
    const organization = await insertOrganization(pool)
    const key = await insertApiKey(pool, { organizationId: organization })
    for (let j = 0; j < LICENSES; j++) {
      const given = { organizationId: organization, maxMachines: MACHINES_OF_LICENSE, leaseSeconds: 600 }
      const license = (await insertLicense(pool, given)).key
      for (let k = 0; k < MACHINES_OF_LICENSE; k++)
        machines.push({ secret: key.secret, license, fingerprint: `machine ${k}` })
    }
  }
  return random(1).shuffle(machines)
}

/** Checks every machine once. The checks are spread evenly over the given duration, and all must be VALID. */
async function checkAll(validator: Service, machines: readonly Leased[], overMs: number, agent: Agent): Promise<void> {
  const startedMs = performance.now()
  const wrong: string[] = []
  const open = new Set<Promise<void>>()
  for (const [i, one] of machines.entries()) {
    const waitMs = startedMs + (i * overMs) / machines.length - performance.now()
    if (waitMs > 1) await sleep(waitMs)
    if (open.size >= 200) await Promise.race(open)
    const ask = async (): Promise<void> => {
      const { license, fingerprint } = one
      const { code } = await check(validator.port, one.secret, { license, fingerprint }, agent)
      if (code !== 'VALID') wrong.push(code)
    }
    const running = ask().finally(() => open.delete(running))
    open.add(running)
  }
  await Promise.all(open)
  expect(wrong).toEqual([])
}

test('decides checks of known machines of leased licenses from memory, and renews their leases with few statements', async () => {
  const machines = await leasedMachines()
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
  const round = (): Promise<void> => checkAll(validator, machines, CHECKED_EVERY_MS, agent)
  await round()
  const granted = await statements()
  expect(granted.claims).toBeGreaterThan(0)
  for (let i = 0; i < byLength(10, 1); i++) await round()
  const known = await statements()
  expect(known.claims).toBe(granted.claims)
  figure('Checks of known machines of leased licenses, before half of the lease', {
    checks: byLength(10, 1) * machines.length,
    'claim statements': known.claims - granted.claims,
    'all statements of the validator': known.all - granted.all,
  })
  // From the sixth minute on, machines renew their leases.
  await round()
  const before = await statements()
  for (let i = 0; i < byLength(0, MEASURED_MINUTES / 2); i++) await round()
  const after = await statements()
  const perMinute = (of: keyof typeof after): number => Math.round((after[of] - before[of]) / MEASURED_MINUTES)
  figure(`${machines.length} leased machines with leases of 10 minutes, each checked every two minutes; per minute`, {
    'claim statements': perMinute('claims'),
    'all statements of the validator': perMinute('all'),
    'updates of machines': perMinute('renewed'),
    'WAL bytes': perMinute('walBytes'),
  })
  agent.destroy()
  await validator.stop()
})
