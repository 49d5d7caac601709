import { setTimeout as sleep } from 'node:timers/promises'

import { type Proxy, startProxy } from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, someText, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let proxy: Proxy
let validator: RunningValidator
let license: Awaited<ReturnType<World['license']>>

function through(url: string, port: number): string {
  const changed = new URL(url)
  changed.hostname = '127.0.0.1'
  changed.port = String(port)
  return changed.href
}

beforeAll(async () => {
  world = await createWorld()
  proxy = await startProxy(Number(new URL(world.database.url).port))
  license = await world.license({ maxMachines: 1_000 })
  validator = await startLoaded(through(world.database.validatorUrl, proxy.port), {
    staleAfterMs: 1_500,
    staleLimitMs: 4_000,
  })
})
afterAll(async () => {
  await validator.close()
  await proxy.close()
  await world.database.drop()
})

let machine = 0
const check = (fingerprint: string, key = license.key): Promise<Reply> =>
  send(validator.port, V2, { body: { license: key, fingerprint }, secret: world.secret })
const readiness = async (): Promise<number> => (await send(validator.adminPort, '/readyz', { method: 'GET' })).status

beforeEach(async () => {
  await until(async () => (await readiness()) === 200)
  await until(async () => (await check('known')).status === 200)
})

test.each(['refuse', 'swallow'] as const)(
  'keeps known machines valid and responds 503 to new ones while Postgres is unreachable (%s)',
  async (how) => {
    proxy[how]()
    const fresh = await check(`new ${++machine}`)
    expect([fresh.status, fresh.headers['retry-after']]).toEqual([503, '1'])
    expect(fresh.body).toEqual({ status: 503, message: someText, code: 'UNAVAILABLE' })
    expect((await check('known')).status).toBe(200)
    expect((await check('any', 'no such key')).body).toEqual({
      valid: false,
      status: 400,
      message: 'No license with this key exists.',
      code: 'NOT_FOUND',
    })
    const body = { licenseKey: license.key, fingerprint: 'never there' }
    const release = await send(validator.port, '/api/v1/deactivate', { body, secret: world.secret })
    expect([release.status, release.body]).toEqual([503, { code: 'UNAVAILABLE', detail: someText }])
    proxy.heal()
    await until(async () => (await check(`new ${machine}`)).status === 200)
  },
)

test('is not ready after STALE_AFTER, and responds 503 after STALE_LIMIT until Postgres is back', async () => {
  proxy.refuse()
  await until(async () => (await readiness()) === 503)
  expect((await check('known')).status).toBe(200)
  await until(async () => (await check('known')).status === 503)
  expect((await check('known')).headers['retry-after']).toBe('1')
  expect((await send(validator.adminPort, '/livez', { method: 'GET' })).status).toBe(200)
  await world.database.pool.query(`update licenses set status = 'suspended' where id = $1`, [license.id])
  proxy.heal()
  await until(async () => (await check('known')).text.includes('SUSPENDED'))
  await world.database.pool.query(`update licenses set status = 'active' where id = $1`, [license.id])
  await until(async () => (await check('known')).status === 200)
})

test('stays stale during a reload from another log, because licenses may have been revoked meanwhile', async () => {
  proxy.refuse()
  await until(async () => (await check('known')).status === 503)
  await world.database.pool.query(`update licenses set status = 'suspended' where id = $1`, [license.id])
  await world.database.pool.query('delete from server_run') // simulates a crash or failover
  const lock = await world.database.pool.connect()
  try {
    await lock.query('begin; lock table machines in access exclusive mode')
    proxy.heal()
    await until(async () => {
      const waiting = await lock.query(`select from pg_locks where relation = 'machines'::regclass and not granted`)
      return waiting.rowCount === 1
    })
    await sleep(300) // longer than the interval at which the validator updates its state
    expect([await readiness(), (await check('known')).status]).toEqual([503, 503])
  } finally {
    await lock.query('rollback')
    lock.release()
  }
  await until(async () => (await readiness()) === 200)
  expect((await check('known')).text).toContain('SUSPENDED')
  await world.database.pool.query(`update licenses set status = 'active' where id = $1`, [license.id])
  await until(async () => (await check('known')).status === 200)
})

test('decides checks of a full license from memory while Postgres is unreachable', async () => {
  const full = await world.license({ maxMachines: 1 })
  await until(async () => (await check('holder', full.key)).status === 200)
  expect((await check('pirate', full.key)).text).toContain('TOO_MANY_MACHINES')
  proxy.refuse()
  for (let round = 0; round < 5; round++) expect((await check('pirate', full.key)).text).toContain('TOO_MANY_MACHINES')
  proxy.heal()
})
