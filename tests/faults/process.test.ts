import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { insertApiKey, insertLicense, insertOrganization, insertRule } from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'

import { Haproxy, hasHaproxy } from './support/balancer.ts'
import {
  type Env,
  endChildren,
  freePort,
  metric,
  type Service,
  startValidator,
  until,
  untilReady,
} from './support/children.ts'
import { check, type Reply } from './support/client.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'
import { watch } from './support/watch.ts'

/** Tests faults of a validator process: errors in workers, the end of the process, a wrong clock, and missing partitions. */

const SABOTAGE = [`--import=${new URL('./support/sabotage.ts', import.meta.url).href}`]
const WORKERS = 2
const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let organizationId: string
let secret: string
let license: Awaited<ReturnType<typeof insertLicense>>
let folder: string

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  license = await insertLicense(pool, { organizationId, maxMachines: null })
})
afterAll(async () => {
  await pool.end()
  await postgres.remove()
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-sabotage-'))
})
afterEach(async () => {
  await endChildren()
  await rm(folder, { recursive: true, force: true })
})

/** Starts a validator that reads its faults from the sabotage file of this test. */
async function startVictim(env: Env = {}, flags: readonly string[] = []): Promise<Service> {
  const all = { VALIDATOR_WORKERS: String(WORKERS), KEYWARD_SABOTAGE: join(folder, 'act'), ...env }
  const victim = await startValidator(postgres.validatorUrl, all, [...SABOTAGE, ...flags])
  await untilReady(victim)
  return victim
}

const sabotage = (act: string): Promise<void> => writeFile(join(folder, 'act'), act)
const ask = ({ port }: Pick<Service, 'port'>, key = license.key): Promise<Reply> =>
  check(port, secret, { license: key, fingerprint: 'm' })

test('replaces workers after an uncaught error without losing counts', async () => {
  const victim = await startVictim()
  for (let i = 0; i < 20; i++) expect((await ask(victim)).code).toBe('VALID')
  for (const round of [1, 2]) {
    await sabotage(`throw ${round}`)
    await until(async () => (await metric(victim, 'keyward_worker_faults_total')) === WORKERS * round)
    await until(async () => (await metric(victim, 'keyward_workers')) === WORKERS)
    await until(async () => (await ask(victim)).code === 'VALID')
  }
  expect(victim.output()).toContain('Sabotaged')
  expect(await metric(victim, 'keyward_checks_total')).toBeGreaterThanOrEqual(22)
  expect(await victim.stop()).toBe(0)
})

/** Waits until the process has ended or has reported the end of every worker. Returns whether the process survived. */
async function fateOf(victim: Service): Promise<'ended' | 'survived'> {
  const state = { fate: null as 'ended' | 'survived' | null }
  void victim.exit.then(() => (state.fate = 'ended'))
  await until(async () => {
    const faults = await metric(victim, 'keyward_worker_faults_total').catch(() => 0)
    if (faults >= WORKERS) state.fate ??= 'survived'
    return state.fate !== null
  }, 20)
  if (state.fate === null) throw new Error('The process neither ended nor reported the end of its workers')
  return state.fate
}

const deaths: { name: string; act: string; flags: readonly string[] }[] = [
  { name: 'a worker exits', act: 'exit', flags: [] },
  { name: 'a worker runs out of memory', act: 'fill', flags: ['--max-old-space-size=64'] },
  { name: 'the process aborts', act: 'abort', flags: [] },
]

test.skipIf(!hasHaproxy).each(deaths)(
  'the other validator serves checks after $name, until a restart (needs haproxy)',
  async ({ act, flags }) => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const ports = { VALIDATOR_PORT: String(port), VALIDATOR_ADMIN_PORT: String(adminPort) }
    const [victim, other] = [await startVictim(ports, flags), await startValidator(postgres.validatorUrl)]
    await untilReady(other)
    const balancer = new Haproxy()
    await balancer.start([victim, other])
    const isNoVerdict = ({ status }: Reply): boolean => status === 0 || status >= 502
    const watching = watch(
      () => ask(balancer),
      (reply) => reply.code === 'VALID' || isNoVerdict(reply),
      5,
    )
    await until(() => watching.answers > 30)
    await sabotage(act)
    const fate = await fateOf(victim)
    await rm(join(folder, 'act'))
    // The test restarts the process, as the orchestrator of a cluster would.
    const next = fate === 'ended' ? await startVictim(ports) : victim
    await untilReady(next)
    const before = watching.answers
    await until(() => watching.answers > before + 30)
    const { wrong } = await watching.stop()
    expect(wrong).toEqual([])
    expect((await ask(next)).code).toBe('VALID')
    await balancer.stop()
  },
)

test('writes no core dump that contains a secret', async () => {
  const limits = ['sh', '-c', 'ulimit -c unlimited; cd "$0" && exec "$@"', folder]
  const env = { KEYWARD_SABOTAGE: join(folder, 'act') }
  const victim = await startValidator(postgres.validatorUrl, env, SABOTAGE, limits)
  await untilReady(victim)
  expect((await ask(victim)).code).toBe('VALID')
  await sabotage('abort')
  expect(await victim.exit).toBe('SIGABRT')
  const dumps = (await readdir(folder)).filter((name) => name.startsWith('core'))
  const found: string[] = []
  for (const name of dumps) {
    const dump = await readFile(join(folder, name))
    for (const word of [secret, license.key, new URL(postgres.validatorUrl).password])
      if (dump.includes(word)) found.push(word)
  }
  expect(found).toEqual([])
})

test('jumps of the wall clock by an hour and a year affect verdicts, but no timeouts', async () => {
  const victim = await startVictim({ STALE_AFTER: '10s', STALE_LIMIT: '60s' })
  const inHalfAnHour = new Date(Date.now() + HOUR_MS / 2)
  const expiring = await insertLicense(pool, { organizationId, maxMachines: null, expiresAt: inHalfAnHour })
  await insertRule(pool, { organizationId, licenseId: license.id, type: 'HWID', value: 'm', expiresAt: inHalfAnHour })
  await until(async () => (await ask(victim, expiring.key)).code === 'VALID')
  await until(async () => (await ask(victim)).code === 'BLACKLISTED')
  for (const [offsetMs, isLater] of [
    [HOUR_MS, true],
    [0, false],
    [YEAR_MS, true],
    [-HOUR_MS, false],
    [-YEAR_MS, false],
    [0, false],
  ] as const) {
    await sabotage(`clock ${offsetMs}`)
    await until(async () => (await ask(victim, expiring.key)).code === (isLater ? 'EXPIRED' : 'VALID'))
    await until(async () => (await ask(victim)).code === (isLater ? 'VALID' : 'BLACKLISTED'))
    // The validator still applies changes, and new machines get slots.
    const fresh = await insertLicense(pool, { organizationId, maxMachines: 1 })
    await until(async () => (await ask(victim, fresh.key)).code === 'VALID')
    expect(victim.output()).not.toContain('silent')
  }
  const answered = await metric(victim, 'keyward_checks_total')
  expect(await victim.stop()).toBe(0)
  const { rows } = await pool.query<{ n: number }>('select sum(count)::int as n from check_counts')
  expect(rows[0]?.n).toBeGreaterThanOrEqual(answered)
  await pool.query('delete from access_rules where license_id = $1', [license.id])
})

test('creates missing partitions without delaying checks', async () => {
  const partitions = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent in ('activity'::regclass, 'check_counts'::regclass)`,
  )
  for (const { name } of partitions.rows) await pool.query(`drop table ${name}`)
  const limited = await insertLicense(pool, { organizationId, maxMachines: 1 })
  const victim = await startVictim()
  await until(async () => (await ask(victim, limited.key)).code === 'VALID')
  expect((await ask(victim)).code).toBe('VALID')
  expect(await victim.stop()).toBe(0)
  const { rows } = await pool.query('select sum(count)::int as n from check_counts having sum(count) >= 2')
  expect(rows).toHaveLength(1)
})
