/**
 * Tests a hostile organization beside a quiet one, for every resource that they share in a validator. The quiet organization
 * must receive no error, and the hostile organization must cause a bounded number of statements. The test prints the latencies
 * of the quiet organization without and with the attack. No latency is asserted, because latencies depend on the computer.
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { ATTACKS, type AttackName, startAttack } from './support/attacker.ts'
import { endChildren, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, send } from './support/client.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

const ROUNDS = byLength(60, 1_000)
/** The number of licenses of the quiet organization. */
const LICENSES = 12
const PER_SECOND = 1_000
const CONNECTIONS = 64

const agent = new Agent({ keepAlive: true, maxSockets: 4 })
let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let validator: Service
let victim: { organizationId: string; secret: string }
let hostile: { organizationId: string; secret: string; licenses: Record<AttackName, string[]> }

beforeAll(async () => {
  postgres = await createPostgres({
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track': 'top',
    max_wal_size: '1GB',
  })
  pool = openPool(postgres.url)
  await pool.query('create extension pg_stat_statements')
  const organization = async (): Promise<{ organizationId: string; secret: string }> => {
    const organizationId = await insertOrganization(pool)
    return { organizationId, secret: (await insertApiKey(pool, { organizationId })).secret }
  }
  victim = await organization()
  const attacker = await organization()
  const { organizationId } = attacker
  const licenses = async (count: number, maxMachines: number | null): Promise<string[]> => {
    const inserted = Array.from({ length: count }, () => insertLicense(pool, { organizationId, maxMachines }))
    return (await Promise.all(inserted)).map(({ key }) => key)
  }
  hostile = {
    ...attacker,
    licenses: {
      'deactivations of invented machines': await licenses(1, 5),
      'activations and deactivations in turn': await licenses(1, 8),
      'new machines on full licenses': await licenses(200, 1),
      'new machines on licenses with free slots': await licenses(50, 100_000),
      'new machines on unlimited licenses': await licenses(50, null),
      'long machine ids at full licenses': await licenses(1, 1),
    },
  }
  validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
})
afterAll(async () => {
  agent.destroy()
  await endChildren()
  await pool.end()
  await postgres.remove()
})

async function calls(name: string): Promise<number> {
  const { rows } = await pool.query<{ calls: number }>(
    'select coalesce(sum(calls), 0)::int as calls from pg_stat_statements where query like $1',
    [`%from ${name}(%`],
  )
  return rows[0]?.calls ?? 0
}

interface Measured {
  errors: string[]
  /** The durations of claims and releases in milliseconds. */
  claims: number[]
  releases: number[]
}

/** Measures the quiet organization. Every new machine gets its slot, is valid from then on, and releases the slot. */
async function measure(): Promise<Measured> {
  const { organizationId, secret } = victim
  const { port } = validator
  const inserted = Array.from({ length: LICENSES }, () => insertLicense(pool, { organizationId, maxMachines: 100_000 }))
  const limited = await Promise.all(inserted)
  const unlimited = await insertLicense(pool, { organizationId, maxMachines: null })
  const open = { license: unlimited.key }
  await until(async () => (await check(port, secret, open, agent)).code === 'VALID')
  const measured: Measured = { errors: [], claims: [], releases: [] }
  const expectCode = (what: string, code: string, wanted: string): void => {
    if (code !== wanted) measured.errors.push(`${what}: ${code}`)
  }
  for (let round = 0; round < ROUNDS; round++) {
    const machine = { license: limited[round % LICENSES]?.key ?? '', fingerprint: `machine ${round}` }
    const claim = await check(port, secret, machine, agent)
    expectCode('new machine', claim.code, 'VALID')
    measured.claims.push(claim.tookMs)
    expectCode('known machine', (await check(port, secret, machine, agent)).code, 'VALID')
    const recorded = await check(port, secret, { ...open, fingerprint: `machine ${round}` }, agent)
    expectCode('machine of an unlimited license', recorded.code, 'VALID')
    const body = { licenseKey: machine.license, fingerprint: machine.fingerprint }
    const release = await send(port, '/api/v1/deactivate', { body, secret, agent })
    expectCode('release', release.text, '{"deactivated":true}')
    measured.releases.push(release.tookMs)
  }
  const recorded = 'select count(*)::int as n from machines where license_id = $1'
  const machines = async (): Promise<number> =>
    (await pool.query<{ n: number }>(recorded, [unlimited.id])).rows[0]?.n ?? 0
  await until(async () => (await machines()) === ROUNDS)
  const named = `select count(distinct machine_id)::int as n from activity
    where license_id = $1 and type = 'CHECK' and code = 'VALID'`
  await until(async () => ((await pool.query<{ n: number }>(named, [unlimited.id])).rows[0]?.n ?? 0) === ROUNDS)
  return measured
}

/** The maximum number of statements a second that call each function, for the hostile and the quiet organization together. */
const MOST: Record<AttackName, { claim_slots: number; release_slots: number }> = {
  'deactivations of invented machines': { claim_slots: 60, release_slots: 60 },
  'activations and deactivations in turn': { claim_slots: 400, release_slots: 60 },
  'new machines on full licenses': { claim_slots: 400, release_slots: 60 },
  'new machines on licenses with free slots': { claim_slots: 600, release_slots: 60 },
  'new machines on unlimited licenses': { claim_slots: 200, release_slots: 60 },
  'long machine ids at full licenses': { claim_slots: 60, release_slots: 60 },
}

test.each(ATTACKS)('%s cause no error for a quiet organization', async (name) => {
  const quiet = await measure()
  const attack = startAttack({
    name,
    port: validator.port,
    secret: hostile.secret,
    licenses: hostile.licenses[name],
    perSecond: PER_SECOND,
    connections: CONNECTIONS,
  })
  await sleep(1_000)
  const before = { claims: await calls('claim_slots'), releases: await calls('release_slots') }
  const startedMs = performance.now()
  const attacked = await measure()
  const seconds = (performance.now() - startedMs) / 1_000
  const claims = ((await calls('claim_slots')) - before.claims) / seconds
  const releases = ((await calls('release_slots')) - before.releases) / seconds
  const counts = await attack.stop()
  figure(`Neighbour, ${name}`, {
    'claim p50': `${quantiles(quiet.claims).p50} -> ${quantiles(attacked.claims).p50} ms`,
    'claim p99': `${quantiles(quiet.claims).p99} -> ${quantiles(attacked.claims).p99} ms`,
    'release p50': `${quantiles(quiet.releases).p50} -> ${quantiles(attacked.releases).p50} ms`,
    'release p99': `${quantiles(quiet.releases).p99} -> ${quantiles(attacked.releases).p99} ms`,
    errors: `${quiet.errors.length} -> ${attacked.errors.length}`,
    'claim statements/s': Math.round(claims),
    'release statements/s': Math.round(releases),
    'attack responses': JSON.stringify(counts),
  })
  expect(attacked.errors).toEqual([])
  expect(quiet.errors).toEqual([])
  expect(claims).toBeLessThan(MOST[name].claim_slots)
  expect(releases).toBeLessThan(MOST[name].release_slots)
})
