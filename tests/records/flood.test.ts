/**
 * Tests very many checks with new machine ids during an outage of Postgres. Usage in memory must stay within its limits. Dropped
 * entries must be counted for each part of the usage. Analytics must be exact.
 */

import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, insertRule, type Proxy, startProxy } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, metric, type Service, startValidator, until, untilReady } from '../faults/support/children.ts'
import { check, send } from '../faults/support/client.ts'
import { byLength, figure } from '../faults/support/length.ts'
import { createPostgres, openPool, type TestPostgres, through } from '../faults/support/postgres.ts'

const FLUSH_MS = 1_000
const FIRST = 1
/** The number of rejected checks. It exceeds the maximum number of machines of a license that are named in a minute. */
const REFUSED = byLength(4_500, 100_000)
/** The number of checked licenses. It exceeds the capacity for license entries of one organization. */
const LICENSES = byLength(2_600, 20_000)
/** The number of new machines. In the long form, it exceeds the number of machines that can wait to be recorded. */
const NEW_MACHINES = byLength(500, 12_000)
/** The maximum number of waiting rows: 6,500 in memory, of which 6,000 are activity, and as many in the batch in progress. */
const MAX_WAITING = 13_000

let postgres: TestPostgres
let proxy: Proxy
let pool: ReturnType<typeof openPool>
let agent: Agent
let validator: Service
let organizationId: string
let secret: string

beforeAll(async () => {
  postgres = await createPostgres()
  proxy = await startProxy(postgres.port)
  pool = openPool(postgres.url)
  agent = new Agent({ keepAlive: true, maxSockets: 32 })
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  await insertRule(pool, { organizationId, value: '203.0.113.0/24' })
  const { productId, customerId } = await insertLicense(pool, { organizationId, key: 'open', maxMachines: null })
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type)
     select gen_random_uuid(), $1, $2, $3, 'L-' || n, 'PERPETUAL' from generate_series(0, $4 - 1) as n`,
    [organizationId, productId, customerId, LICENSES],
  )
  const url = through(postgres.validatorUrl, proxy.port)
  validator = await startValidator(url, { LOG_LEVEL: 'silent', STALE_AFTER: '600s', VALIDATOR_WORKERS: '2' })
  await untilReady(validator)
})
afterAll(async () => {
  await endChildren()
  agent.destroy()
  await proxy.close()
  await pool.end()
  await postgres.remove()
})

/** Sends the checks, 32 at a time, and asserts their code. */
async function sendAll(
  checks: number,
  code: string,
  fields: (n: number) => Parameters<typeof check>[2],
): Promise<void> {
  let next = 0
  const work = async (): Promise<void> => {
    for (let n = next++; n < checks; n = next++)
      expect((await check(validator.port, secret, fields(n), agent)).code).toBe(code)
  }
  await Promise.all(Array.from({ length: 32 }, work))
}

async function dropped(): Promise<Record<string, number>> {
  const { text } = await send(validator.adminPort, '/metrics', { method: 'GET' })
  const found = text.matchAll(/^keyward_records_dropped_total\{reason="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...found].map(([, reason = '', count]) => [reason, Number(count)]))
}

test(
  'a flood during an outage stays within the limits and loses no analytics',
  {
    timeout: byLength(120_000, 1_800_000),
  },
  async () => {
    proxy.refuse()
    const residentBefore = await metric(validator, 'process_resident_memory_bytes')
    const refused = (n: number) => ({ license: 'open', fingerprint: `machine ${n} of a stranger`, ip: '203.0.113.7' })
    // The first batch waits for Postgres, so that all later entries are aggregated together.
    await sendAll(FIRST, 'BLACKLISTED', refused)
    await sleep(2 * FLUSH_MS)
    await sendAll(REFUSED, 'BLACKLISTED', refused)
    await sendAll(LICENSES, 'VALID', (n) => ({ license: `L-${n}` }))
    await sendAll(NEW_MACHINES, 'VALID', (n) => ({ license: 'open', fingerprint: `new ${n}` }))
    await sendAll(NEW_MACHINES, 'NOT_FOUND', (n) => ({ license: `no such key ${n}`, fingerprint: 'm' }))
    const resident = (await metric(validator, 'process_resident_memory_bytes')) - residentBefore
    const waiting = await metric(validator, 'keyward_records_waiting')
    const lost = await dropped()
    figure('flood', {
      checks: FIRST + REFUSED + LICENSES + 2 * NEW_MACHINES,
      waiting,
      ...lost,
      'more resident MiB': Math.round(resident / 2 ** 20),
    })
    expect(waiting).toBeLessThan(MAX_WAITING)
    expect(lost['activity']).toBeGreaterThan(0)
    expect([lost['analytics'], lost['rules']]).toEqual([0, 0])
    expect(lost['machines']).toBe(Math.max(0, NEW_MACHINES - 10_000))
    expect(await metric(validator, 'keyward_records_batches_refused_total')).toBe(0)

    proxy.heal()
    const counted = async (): Promise<Record<string, number>> => {
      const text = 'select code, sum(count)::int as n from check_counts where organization_id = $1 group by 1'
      const { rows } = await pool.query<{ code: string; n: number }>(text, [organizationId])
      return Object.fromEntries(rows.map(({ code, n }) => [code, n]))
    }
    const answered = { BLACKLISTED: FIRST + REFUSED, VALID: LICENSES + NEW_MACHINES, NOT_FOUND: NEW_MACHINES }
    await until(async () => ((await counted())['NOT_FOUND'] ?? 0) >= NEW_MACHINES)
    expect(await counted()).toEqual(answered)
    expect(await validator.stop()).toBe(0)
    expect(await counted()).toEqual(answered)
    // Beyond the limit an entry covers the whole license, so only the dropped entries are missing in the sum.
    const activity = `select sum(count)::int as n from activity where organization_id = $1 and type = 'CHECK'`
    const { rows } = await pool.query<{ n: number }>(activity, [organizationId])
    expect((rows[0]?.n ?? 0) + (lost['activity'] ?? 0)).toBe(FIRST + REFUSED + LICENSES + NEW_MACHINES)
  },
)
