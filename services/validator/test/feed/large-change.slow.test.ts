/** Tests a change of tens of thousands of rows, which the follower reads in pages while it follows other organizations. */

import { insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, loadsOf, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.url, {}, 'large')
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

test('follows other organizations while it reads a change of tens of thousands of rows', async () => {
  const { pool } = world.database
  const before = await loads()
  const license = await world.license({ maxMachines: null })
  const other = await createWorld(world.database)
  const watched = await other.license({ maxMachines: null })
  const checkOther = (): Promise<Reply> =>
    send(validator.port, V2, { body: { license: watched.key, fingerprint: 'm' }, secret: other.secret })
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), organization_id, product_id, customer_id, 'mass-' || i, 'PERPETUAL', null
     from licenses, generate_series(1, 24000) i where id = $1`,
    [license.id],
  )
  await until(() => says('mass-24000', 'VALID'))
  await insertRule(pool, { organizationId: world.organizationId, licenseId: license.id, type: 'HWID', value: 'bad' })
  // The large change is read from the beginning again after its connection is terminated.
  const terminated = until(async () => {
    const killed = await pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'keyward validator large change'`,
    )
    return killed.rows.length > 0
  })
  const client = await pool.connect()
  await client.query('begin')
  await client.query(`update licenses set status = 'suspended' where key like 'mass-%' and key <> 'mass-7'`)
  await client.query(`update access_rules set value = 'worse' where license_id = $1`, [license.id])
  await client.query(`delete from licenses where key = 'mass-7'`)
  await client.query('commit')
  client.release()
  await terminated
  for (const [status, code] of [
    ['suspended', 'SUSPENDED'],
    ['active', 'VALID'],
    ['revoked', 'REVOKED'],
  ] as const) {
    await pool.query('update licenses set status = $2 where id = $1', [watched.id, status])
    await until(async () => (await checkOther()).text.includes(`"${code}"`))
  }
  await pool.query(`update licenses set status = 'revoked' where key = 'mass-8'`)
  await until(() => says('mass-8', 'REVOKED'))
  for (const i of [1, 2_500, 24_000]) await until(() => says(`mass-${i}`, 'SUSPENDED'))
  await until(() => says('mass-7', 'NOT_FOUND'))
  await until(async () => (await check(license.key, 'worse')).text.includes('BLACKLISTED'))
  await until(async () => (await check(license.key, 'bad')).text.includes('VALID'))
  expect(await loads()).toBe(before)
})
