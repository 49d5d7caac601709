import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, onServer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, memoryMib, metric, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, says } from './support/client.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'
import { watch } from './support/watch.ts'

/**
 * Tests changes during a reload, and during a large change of another vendor. `KEYWARD_LICENSES` and `KEYWARD_SECONDS` override
 * the number of licenses and the duration in seconds.
 */

const LICENSES = Number(process.env['KEYWARD_LICENSES'] ?? byLength(5_000, 100_000))
/** The number of licenses that one statement inserts. */
const BATCH = 20_000
const SECONDS = Number(process.env['KEYWARD_SECONDS'] ?? byLength(4, 600))

interface Vendor {
  organizationId: string
  secret: string
  license: Awaited<ReturnType<typeof insertLicense>>
}

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let validator: Service
let large: Vendor
let other: Vendor

async function createVendor(): Promise<Vendor> {
  const organizationId = await insertOrganization(pool)
  const { secret } = await insertApiKey(pool, { organizationId })
  return { organizationId, secret, license: await insertLicense(pool, { organizationId, maxMachines: null }) }
}

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  large = await createVendor()
  other = await createVendor()
  const { organizationId, license } = large
  for (let first = 1; first <= LICENSES; first += BATCH)
    await pool.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
       select gen_random_uuid(), $1, $2, $3, 'bulk-' || i, 'PERPETUAL', null from generate_series($4::int, $5::int) i`,
      [organizationId, license.productId, license.customerId, first, Math.min(first + BATCH - 1, LICENSES)],
    )
  await pool.query('analyze')
  validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

const loads = (): Promise<number> => metric(validator, 'keyward_feed_loads_total')

/** Waits until no reload has ended for 2 s, or for 20 s in the long form. Consecutive reloads end at shorter intervals. */
async function untilLoaded(): Promise<void> {
  for (let before = -1; before !== (await loads()); await sleep(byLength(2_000, 20_000))) before = await loads()
}

const reply = ({ secret }: Vendor, license: string) => check(validator.port, secret, { license, fingerprint: 'm' })

/** Suspends and reinstates a license repeatedly. Returns the times from each commit to its enforcement. */
async function toggle({ secret }: Vendor, license: Vendor['license'], isOver: () => boolean): Promise<number[]> {
  const tookMs: number[] = []
  for (let i = 0; !isOver(); i++) {
    const [status, code] = i % 2 === 0 ? ['suspended', 'SUSPENDED'] : ['active', 'VALID']
    await pool.query('update licenses set status = $2 where id = $1', [license.id, status])
    const committedMs = performance.now()
    await until(() => says(validator.port, secret, { license: license.key, fingerprint: 'm' }, code), 1)
    tookMs.push(performance.now() - committedMs)
    // The validator must not return to the older status.
    expect(await says(validator.port, secret, { license: license.key, fingerprint: 'm' }, code)).toBe(true)
    await sleep(20)
  }
  return tookMs
}

test('enforces changes during forced reloads', async () => {
  const before = await loads()
  const valid = watch(() => reply(large, 'bulk-7'), 'VALID', 5)
  const unknown = watch(() => reply(large, 'unknown'), 'NOT_FOUND', 5)
  const state = { isOver: false }
  const changes = Promise.all([
    toggle(large, large.license, () => state.isOver),
    toggle(other, other.license, () => state.isOver),
  ])
  for (let i = 0; i < SECONDS; i++) {
    await pool.query('select void_change_log()')
    await sleep(1_000)
  }
  state.isOver = true
  const tookMs = (await changes).flat()
  const [checks, others] = [await valid.stop(), await unknown.stop()]
  expect([...checks.wrong, ...others.wrong]).toEqual([])
  expect(await loads()).toBeGreaterThan(before + 1)
  figure('Reloads forced once a second, enforced after ms', {
    licenses: LICENSES,
    loads: (await loads()) - before,
    changes: tookMs.length,
    ...quantiles(tookMs),
  })
  figure('Meanwhile checks', { answers: checks.answers + others.answers, ...quantiles(checks.tookMs) })
})

test('enforces changes of another vendor during a merge of many licenses', async () => {
  await untilLoaded()
  const before = await loads()
  const target = await insertLicense(pool, { organizationId: large.organizationId, maxMachines: null })
  const state = { isOver: false }
  const quiet = toggle(other, other.license, () => state.isOver)
  await sleep(2_000)
  state.isOver = true
  const quietMs = await quiet
  const beforeMib = await memoryMib(validator)
  state.isOver = false
  const valid = watch(
    () => reply(other, other.license.key),
    ({ code }) => ['VALID', 'SUSPENDED'].includes(code),
    5,
  )
  const changes = toggle(other, other.license, () => state.isOver)
  const startedMs = performance.now()
  // A million licenses take longer than the timeouts of the pool.
  await onServer(postgres.url, async (client) => {
    await client.query('begin')
    await client.query('update licenses set customer_id = $2 where customer_id = $1', [
      large.license.customerId,
      target.customerId,
    ])
    await client.query(`update licenses set status = 'suspended' where key = 'bulk-9'`)
    await client.query('commit')
  }).catch((error: unknown) => {
    state.isOver = true
    throw error
  })
  const committedMs = performance.now()
  let mostMib = await memoryMib(validator)
  while ((await reply(large, 'bulk-9')).code !== 'SUSPENDED') {
    mostMib = Math.max(mostMib, await memoryMib(validator))
    await sleep(20)
  }
  const throughMs = performance.now()
  state.isOver = true
  const tookMs = await changes
  const checks = await valid.stop()
  figure('Quiet, enforced after ms', { changes: quietMs.length, ...quantiles(quietMs) })
  figure('Beside a merge, enforced after ms', {
    licenses: LICENSES,
    'committed after ms': Math.round(committedMs - startedMs),
    'through after ms': Math.round(throughMs - committedMs),
    'memory before in MiB': beforeMib,
    'largest memory in MiB': mostMib,
    changes: tookMs.length,
    ...quantiles(tookMs),
  })
  figure('Meanwhile checks', { answers: checks.answers, ...quantiles(checks.tookMs) })
  expect(checks.wrong).toEqual([])
  expect(await loads()).toBe(before)
})
