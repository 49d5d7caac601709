import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, insertRule, type Proxy, startProxy } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, metric, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, type Reply } from './support/client.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres, through } from './support/postgres.ts'
import { watch } from './support/watch.ts'

let postgres: TestPostgres
let proxy: Proxy
let pool: ReturnType<typeof openPool>
let validator: Service
let organizationId: string
let secret: string
let license: Awaited<ReturnType<typeof insertLicense>>
let pirated: Awaited<ReturnType<typeof insertLicense>>

beforeAll(async () => {
  postgres = await createPostgres()
  proxy = await startProxy(postgres.port)
  pool = openPool(postgres.url)
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  license = await insertLicense(pool, { organizationId, maxMachines: 100_000 })
  pirated = await insertLicense(pool, { organizationId, maxMachines: 100_000 })
  await insertRule(pool, { organizationId, licenseId: pirated.id, value: '203.0.113.0/24' })
  validator = await startValidator(through(postgres.validatorUrl, proxy.port), { STALE_AFTER: '600s' })
  await untilReady(validator)
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await proxy.close()
  await postgres.remove()
})

const ask = (fingerprint: string, key = license.key): Promise<Reply> =>
  check(validator.port, secret, { license: key, fingerprint, ip: '203.0.113.9' })

let machines = 0
const granted: string[] = []

/** Sends the check of a new machine. Records the machine in `granted` if the check is VALID. */
async function askNew(): Promise<Reply> {
  const fingerprint = `new ${++machines}`
  const reply = await ask(fingerprint)
  if (reply.code === 'VALID') granted.push(fingerprint)
  return reply
}

const faults: Record<
  string,
  { begin: () => Promise<unknown>; end: () => Promise<unknown>; lastsMs: readonly number[] }
> = {
  'stopped in order': {
    begin: () => postgres.stop('fast'),
    end: () => postgres.start(),
    lastsMs: byLength([1_000], [1_000, 6_000, 60_000]),
  },
  crashed: {
    begin: () => postgres.stop('immediate'),
    end: () => postgres.start(),
    lastsMs: byLength([1_000], [1_000, 6_000, 60_000]),
  },
  frozen: {
    begin: () => postgres.freeze(),
    end: () => postgres.thaw(),
    lastsMs: byLength([4_000], [1_000, 6_000, 60_000]),
  },
  unreachable: {
    begin: () => Promise.resolve(proxy.swallow()),
    end: () => Promise.resolve(proxy.heal()),
    lastsMs: byLength([4_000], [1_000, 6_000, 60_000]),
  },
}

const cases = Object.entries(faults).flatMap(([name, { lastsMs }]) => lastsMs.map((ms) => ({ name, ms })))

test.each(cases)('only checks of new machines fail while Postgres is $name for $ms ms', async ({ name, ms }) => {
  const fault = faults[name]
  if (!fault) throw new Error(name)
  expect((await ask('known')).code).toBe('VALID')
  const known = watch(() => ask('known'), 'VALID')
  const refused = watch(() => ask('known', pirated.key), 'BLACKLISTED')
  const unknown = watch(() => ask('known', 'no such key'), 'NOT_FOUND')
  const fresh = watch(
    askNew,
    (reply) => reply.code === 'VALID' || (reply.status === 503 && reply.headers['retry-after'] === '1'),
    50,
  )
  await fault.begin()
  await sleep(ms)
  const during = await askNew()
  expect([during.status, during.headers['retry-after']]).toEqual([503, '1'])
  await fault.end()
  const healedMs = performance.now()
  const rule = { organizationId, licenseId: license.id, type: 'HWID', value: `bad ${++machines}` } as const
  await insertRule(pool, rule)
  await until(async () => (await ask(rule.value)).code === 'BLACKLISTED')
  await until(async () => (await askNew()).code === 'VALID')
  const freshAfterMs = Math.round(performance.now() - healedMs)

  const watches = { known, refused, unknown, fresh }
  for (const [what, one] of Object.entries(watches)) {
    const { wrong, slowestMs, answers, tookMs } = await one.stop()
    expect(wrong, what).toEqual([])
    expect(answers, what).toBeGreaterThan(what === 'fresh' ? 2 : 10)
    expect(slowestMs, what).toBeLessThan(byLength(4_000, 2_200))
    figure(`Postgres ${name} for ${ms} ms, ${what}`, { answers, ...quantiles(tookMs) })
  }
  figure(`Postgres ${name} for ${ms} ms, healed`, { 'fresh after ms': freshAfterMs })
  expect(freshAfterMs).toBeLessThan(byLength(10_000, 3_000))
})

test('loses no granted slot and no recorded check', async () => {
  const { rows } = await pool.query<{ machine: Buffer }>(
    'select machine_id as machine from machines where license_id = $1',
    [license.id],
  )
  const held = new Set(rows.map(({ machine }) => machine.toString()))
  expect(granted.filter((machine) => !held.has(machine))).toEqual([])
  const answered = await metric(validator, 'keyward_checks_total')
  expect(await validator.stop()).toBe(0)
  const counted = await pool.query<{ n: number }>('select sum(count)::int as n from check_counts')
  expect(counted.rows).toEqual([{ n: answered }])
})
