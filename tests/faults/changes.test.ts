import { setTimeout as sleep } from 'node:timers/promises'

import { pruneFeed, uuidv7 } from '@keyward/database'
import { insertApiKey, insertLicense, insertOrganization, insertRule, onServer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, metric, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, type Reply, says } from './support/client.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'
import { watch } from './support/watch.ts'

/** Tests faults between a change in Postgres and its enforcement by validators. */

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let validator: Service
let organizationId: string
let secret: string
let license: Awaited<ReturnType<typeof insertLicense>>

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  license = await insertLicense(pool, { organizationId, maxMachines: null })
  validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

const ask = (code: string, key = license.key, fingerprint = 'm'): Promise<boolean> =>
  says(validator.port, secret, { license: key, fingerprint }, code)
const reply = (key: string): Promise<Reply> => check(validator.port, secret, { license: key, fingerprint: 'm' })
const setStatus = (status: string, id = license.id): Promise<unknown> =>
  pool.query('update licenses set status = $2 where id = $1', [id, status])
const loads = (): Promise<number> => metric(validator, 'keyward_feed_loads_total')

/** Changes the status of the license. Returns the time from the commit to the enforcement. */
async function enforcedAfterMs(status: string, code: string): Promise<number> {
  await setStatus(status)
  const committedMs = performance.now()
  await until(() => ask(code), 1)
  return performance.now() - committedMs
}

test('enforces every change in order while its Postgres connections are killed repeatedly', async () => {
  const state = { isOver: false, kills: 0 }
  const killing = (async () => {
    while (!state.isOver) {
      const { rowCount } = await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where application_name in ('keyward validator feed', 'keyward validator listener')`,
      )
      state.kills += rowCount ?? 0
      await sleep(byLength(300, 1_000))
    }
  })()
  const loadsBefore = await loads()
  const tookMs: number[] = []
  for (let i = 0; i < byLength(10, 200) || state.kills <= 3; i++) {
    tookMs.push(await enforcedAfterMs('suspended', 'SUSPENDED'), await enforcedAfterMs('active', 'VALID'))
    await sleep(byLength(20, 100))
  }
  state.isOver = true
  await killing
  figure('Backends killed in a loop, enforced after ms', { kills: state.kills, ...quantiles(tookMs) })
  expect(state.kills).toBeGreaterThan(3)
  expect(await loads()).toBe(loadsBefore)
})

test('enforces other changes during a long write transaction, and the changes of this transaction after its commit', async () => {
  const other = await insertLicense(pool, { organizationId, maxMachines: null })
  await until(() => ask('VALID', other.key))
  const tookMs: number[] = []
  await onServer(postgres.url, async (open) => {
    await open.query('begin')
    await open.query(`update licenses set status = 'suspended' where id = $1`, [other.id])
    for (let i = 0; i < byLength(10, 200); i++)
      tookMs.push(await enforcedAfterMs('suspended', 'SUSPENDED'), await enforcedAfterMs('active', 'VALID'))
    expect(await ask('VALID', other.key)).toBe(true)
    await open.query('commit')
  })
  await until(() => ask('SUSPENDED', other.key))
  figure('Beside a long open transaction, enforced after ms', quantiles(tookMs))
})

test('reloads when the log was pruned while the validator was suspended', async () => {
  const gone = await insertLicense(pool, { organizationId, maxMachines: null })
  await until(() => ask('VALID', gone.key))
  const loadsBefore = await loads()
  await validator.freeze()
  await pool.query('delete from licenses where id = $1', [gone.id])
  await setStatus('suspended')
  await pruneFeed(pool, 0)
  await pruneFeed(pool, 0)
  expect((await pool.query('select from change_log')).rowCount).toBe(0)
  validator.signal('SIGCONT')
  await until(() => ask('SUSPENDED'))
  await until(() => ask('NOT_FOUND', gone.key))
  expect(await loads()).toBeGreaterThan(loadsBefore)
  await setStatus('active')
  await until(() => ask('VALID'))
})

test('decides checks while tens of thousands of changed rows are applied', async () => {
  const most = byLength(25_000, 50_000)
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, 'bulk-' || i, 'PERPETUAL', null from generate_series(1, $4::int) i`,
    [organizationId, license.productId, license.customerId, most],
  )
  const sample = [1, 777, most / 2, most - 1, most].map((i) => `bulk-${i}`)
  for (const key of sample) await until(() => ask('VALID', key))
  const serving = watch(() => reply(license.key), 'VALID')
  await pool.query(`update licenses set status = 'revoked' where key like 'bulk-%'`)
  const committedMs = performance.now()
  for (const key of sample) await until(() => ask('REVOKED', key))
  figure('Licenses revoked at once, enforced after ms', {
    licenses: most,
    all: Math.round(performance.now() - committedMs),
  })
  await pool.query(`delete from licenses where key like 'bulk-%'`)
  for (const key of sample) await until(() => ask('NOT_FOUND', key))
  const { wrong, answers, slowestMs } = await serving.stop()
  expect([wrong, answers > 5]).toEqual([[], true])
  figure('Meanwhile checks', { answers, 'slowest ms': Math.round(slowestMs) })
})

test('skips unreadable rows, and logs them without their content', async () => {
  await pool.query(
    'alter table access_rules drop constraint access_rules_type_check, drop constraint access_rules_kind_check',
  )
  await pool.query('alter table licenses drop constraint licenses_status_check')
  const skipped = (): Promise<number> => metric(validator, 'keyward_feed_skipped_rows_total')
  const before = await skipped()
  const unreadable = [
    { type: 'IP', value: '10.0.0.0/99', kind: 'BLACKLIST' },
    { type: 'IP', value: 'a secret address', kind: 'BLACKLIST' },
    { type: 'COUNTRY', value: 'Atlantis', kind: 'BLACKLIST' },
    { type: 'MOON_PHASE', value: 'full', kind: 'BLACKLIST' },
    { type: 'HWID', value: 'machine of the graylist', kind: 'GRAYLIST' },
  ]
  for (const { type, value, kind } of unreadable)
    await pool.query(
      `insert into access_rules (id, organization_id, kind, type, value, scope, created_by)
       values ($1, $2, $3, $4, $5, 'ORGANIZATION', '{}')`,
      [uuidv7(), organizationId, kind, type, Buffer.from(value)],
    )
  await insertRule(pool, { organizationId, type: 'HWID', value: 'bad' })
  await until(() => ask('BLACKLISTED', license.key, 'bad'))
  await setStatus('sleeping', license.id)
  await insertRule(pool, { organizationId, type: 'HWID', value: 'worse' })
  const other = await insertLicense(pool, { organizationId, maxMachines: null })
  await until(() => ask('BLACKLISTED', other.key, 'worse'))
  await until(() => ask('NOT_FOUND'))
  expect(await skipped()).toBeGreaterThan(before + unreadable.length)
  expect(validator.output()).toContain('row skipped')
  for (const { value } of unreadable) expect(validator.output()).not.toContain(value)

  const second = await startValidator(postgres.validatorUrl)
  await untilReady(second)
  expect((await check(second.port, secret, { license: other.key, fingerprint: 'worse' })).code).toBe('BLACKLISTED')
  expect((await check(second.port, secret, { license: other.key, fingerprint: 'good' })).code).toBe('VALID')
  // The machines of the unreadable license are also counted as skipped.
  expect(await metric(second, 'keyward_feed_skipped_rows_total')).toBeGreaterThan(unreadable.length)
  await second.stop()
})
