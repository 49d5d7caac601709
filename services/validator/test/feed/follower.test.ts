import { insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, loadsOf, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.url)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const check = (license: string, fingerprint = 'm'): Promise<Reply> =>
  send(validator.port, V2, { body: { license, fingerprint }, secret: world.secret })
const says = async (license: string, code: string): Promise<boolean> =>
  (await check(license)).text.includes(`"${code}"`)
const loads = (): Promise<number> => loadsOf(validator)
const killFeed = (): Promise<unknown> =>
  world.database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name in ('keyward validator feed', 'keyward validator listener')`,
  )

test('enforces inserts, updates and deletes that were made with SQL', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: null })
  await until(() => says(license.key, 'VALID'))
  for (const [column, value, code] of [
    ['status', 'suspended', 'SUSPENDED'],
    ['status', 'active', 'VALID'],
    ['key', `renamed-${license.key}`, 'NOT_FOUND'],
    ['key', license.key, 'VALID'],
    ['status', 'revoked', 'REVOKED'],
  ] as const) {
    await pool.query(`update licenses set ${column} = $2 where id = $1`, [license.id, value])
    await until(() => says(license.key, code))
  }
  await pool.query('delete from licenses where id = $1', [license.id])
  await until(() => says(license.key, 'NOT_FOUND'))
  expect(await loads()).toBe(1)
})

test('applies the changes of a long transaction and those committed meanwhile', async () => {
  const { pool } = world.database
  const open = await pool.connect()
  const first = await world.license({ maxMachines: null })
  await until(() => says(first.key, 'VALID'))
  await open.query('begin')
  await open.query(`update licenses set status = 'suspended' where id = $1`, [first.id])
  const second = await world.license({ maxMachines: null })
  await until(() => says(second.key, 'VALID'))
  expect(await says(first.key, 'VALID')).toBe(true)
  await open.query('commit')
  open.release()
  await until(() => says(first.key, 'SUSPENDED'))
  expect(await loads()).toBe(1)
})

test('loses no change when the backends of its connections are terminated', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: null })
  await until(() => says(license.key, 'VALID'))
  for (const [status, code] of [
    ['suspended', 'SUSPENDED'],
    ['active', 'VALID'],
    ['suspended', 'SUSPENDED'],
  ] as const) {
    await killFeed()
    await pool.query('update licenses set status = $2 where id = $1', [license.id, status])
    await until(() => says(license.key, code))
  }
  expect(await loads()).toBe(1)
})

test('reloads when the log no longer contains its position, and removes deleted rows', async () => {
  const { pool } = world.database
  const gone = await world.license({ maxMachines: null })
  const kept = await world.license({ maxMachines: 1 })
  await until(() => says(gone.key, 'VALID'))
  await until(() => says(kept.key, 'VALID'))
  await insertRule(pool, { organizationId: world.organizationId, licenseId: kept.id, type: 'HWID', value: 'bad' })
  await until(async () => (await check(kept.key, 'bad')).text.includes('BLACKLISTED'))
  const before = await loads()
  // One transaction deletes the rows and prunes the log, so that the validator's next read finds a log without its position.
  const client = await pool.connect()
  await client.query('begin')
  await client.query('delete from licenses where id = $1', [gone.id])
  await client.query(`delete from access_rules where license_id = $1`, [kept.id])
  await client.query('select forget_change_log()')
  await client.query('commit')
  client.release()
  await until(() => says(gone.key, 'NOT_FOUND'))
  await until(async () => !(await check(kept.key, 'bad')).text.includes('BLACKLISTED'))
  expect(await loads()).toBeGreaterThan(before)
  expect((await check(kept.key)).status).toBe(200)
  expect((await check(kept.key, 'second')).text).toContain('TOO_MANY_MACHINES')
})

test('compares the index with Postgres on request, and follows changes meanwhile', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: null })
  await until(() => says(license.key, 'VALID'))
  const before = await loads()
  await pool.query('select void_change_log()')
  for (const [status, code] of [
    ['suspended', 'SUSPENDED'],
    ['active', 'VALID'],
  ] as const) {
    await pool.query('update licenses set status = $2 where id = $1', [license.id, status])
    await until(() => says(license.key, code))
  }
  await until(async () => (await loads()) > before)
  expect(await says(license.key, 'VALID')).toBe(true)
})

test('removes the rows of a truncated table without a reload', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: null })
  await insertRule(pool, { organizationId: world.organizationId, licenseId: license.id, type: 'HWID', value: 'bad' })
  await until(async () => (await check(license.key, 'bad')).text.includes('BLACKLISTED'))
  const before = await loads()
  await pool.query('truncate access_rules cascade')
  await until(async () => (await check(license.key, 'bad')).text.includes('VALID'))
  expect(await loads()).toBe(before)
})

test('applies a change of thousands of rows', async () => {
  const { pool } = world.database
  const license = await world.license({ maxMachines: null })
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), organization_id, product_id, customer_id, 'bulk-' || i, 'PERPETUAL', null
     from licenses, generate_series(1, 5000) i where id = $1`,
    [license.id],
  )
  await until(() => says('bulk-5000', 'VALID'))
  await pool.query(`update licenses set status = 'revoked' where product_id = $1`, [license.productId])
  for (const i of [1, 2_500, 5_000]) await until(() => says(`bulk-${i}`, 'REVOKED'))
  expect(await says('bulk-17', 'REVOKED')).toBe(true)
})

test('publishes the snapshot that it has applied', async () => {
  const { pool } = world.database
  const { rows } = await pool.query<{ snapshot: string }>('select pg_current_snapshot()::text as snapshot')
  await until(async () => {
    const found = await pool.query(
      'select from validators where ready and pg_snapshot_xmax(applied::pg_snapshot) >= pg_snapshot_xmax($1::pg_snapshot)',
      [rows[0]?.snapshot],
    )
    return found.rows.length === 1
  })
  expect(rows).toHaveLength(1)
})
