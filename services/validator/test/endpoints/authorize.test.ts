/** Tests forward authentication (docs/api.md#h14). */

import { insertRule, isBehindBalancer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, raw, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const PATH = '/api/v2/authorize'
const EXPIRES = '2100-02-03T04:05:06.789Z'
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

type Headers = Record<string, string>
const authorize = (license: string, machine = 'm1', more: { method?: string; headers?: Headers; body?: string } = {}) =>
  send(validator.port, PATH, {
    method: 'GET',
    secret: world.secret,
    ...more,
    headers: { 'x-keyward-license': license, 'x-keyward-machine': machine, ...more.headers },
  })
/** Returns the status with the headers that contain the verdict. */
const shown = ({ status, headers }: Reply): unknown[] => [
  status,
  headers['x-keyward-code'],
  headers['x-keyward-expires'],
  headers['x-keyward-grace-ends'],
]
async function loaded(given: Parameters<World['license']>[0]): Promise<string> {
  const { key } = await world.license(given)
  await until(async () => shown(await authorize(key, 'first'))[1] !== 'NOT_FOUND')
  return key
}

test.each(['GET', 'HEAD', 'POST'])('%s returns 204 without a body, with the code and the expiry', async (method) => {
  const key = await loaded({ expiresAt: new Date(EXPIRES) })
  const reply = await authorize(key, 'm1', { method })
  expect(shown(reply)).toEqual([204, 'VALID', EXPIRES, undefined])
  expect(reply.text).toBe('')
  expect(reply.headers['content-length']).toBeUndefined()
  expect(shown(await authorize(await loaded({}), 'm1', { method }))).toEqual([204, 'VALID', undefined, undefined])
})

test('returns the end of the grace period', async () => {
  const endedMs = Date.now() - 1_000
  const key = await loaded({ expiresAt: new Date(endedMs), maxMachines: null })
  const graceEnds = new Date(endedMs + 86_400_000).toISOString()
  await world.database.pool.query('update licenses set grace_days = 1 where key = $1', [key])
  await until(async () => (await authorize(key)).status === 204)
  expect(shown(await authorize(key))).toEqual([204, 'VALID', new Date(endedMs).toISOString(), graceEnds])
})

test.each([
  { code: 'SUSPENDED', given: { status: 'suspended' as const } },
  { code: 'REVOKED', given: { status: 'revoked' as const } },
  { code: 'EXPIRED', given: { expiresAt: new Date('2001-01-01T00:00:00Z') }, expires: '2001-01-01T00:00:00.000Z' },
])('returns 403 with the code $code', async ({ code, given, expires }) => {
  const reply = await authorize(await loaded(given))
  expect(shown(reply)).toEqual([403, code, expires, undefined])
  expect(reply.body).toEqual({ status: 403, message: expect.any(String) as unknown, code })
})

// A balancer replaces the forwarded address.
test.skipIf(isBehindBalancer)('decides by access rules for machines, addresses and countries', async () => {
  const license = await world.license({ maxMachines: null })
  await until(async () => (await authorize(license.key)).status === 204)
  const rule = { organizationId: world.organizationId, licenseId: license.id }
  await insertRule(world.database.pool, { ...rule, type: 'HWID', value: 'bad' })
  await insertRule(world.database.pool, { ...rule, type: 'IP', value: '192.0.2.0/24' })
  await insertRule(world.database.pool, { ...rule, type: 'COUNTRY', value: 'NL' })
  await until(async () => (await authorize(license.key, 'bad')).status === 403)
  const from = async (headers: Headers) => shown(await authorize(license.key, 'm1', { headers }))[0]
  await until(async () => (await from({ 'x-forwarded-for': '192.0.2.9' })) === 403)
  await until(async () => (await from({ 'x-country': 'NL' })) === 403)
  expect(await from({ 'x-forwarded-for': '198.51.100.1', 'x-country': 'DE' })).toBe(204)
})

test('claims slots up to the machine limit', async () => {
  const key = await loaded({ maxMachines: 1 })
  expect(shown(await authorize(key, 'first'))[0]).toBe(204)
  expect(shown(await authorize(key, 'second'))).toEqual([403, 'TOO_MANY_MACHINES', undefined, undefined])
  const { rows } = await world.database.pool.query(
    'select m.machine_id from machines m join licenses l on l.id = m.license_id where l.key = $1',
    [key],
  )
  expect(rows).toEqual([{ machine_id: Buffer.from('first') }])
})

test('returns 403 without a license key, and never the license of another organization', async () => {
  expect(shown(await authorize(''))).toEqual([403, 'NOT_FOUND', undefined, undefined])
  expect((await send(validator.port, PATH, { method: 'GET', secret: world.secret })).status).toBe(403)
  expect(shown(await authorize('x'.repeat(500)))).toEqual([403, 'NOT_FOUND', undefined, undefined])
})

test('returns an error without the headers of a verdict when no verdict exists', async () => {
  const key = await loaded({})
  const unauthorized = await authorize(key, 'm1', { headers: { authorization: 'Bearer nothing' } })
  expect(shown(unauthorized)).toEqual([401, undefined, undefined, undefined])
  expect(unauthorized.headers['www-authenticate']).toBe('Bearer')
  expect((await authorize(key, 'm'.repeat(513))).status).toBe(422)
  const put = await authorize(key, 'm1', { method: 'PUT' })
  expect([put.status, put.headers['allow']]).toEqual([405, 'GET, HEAD, POST'])
})

test('ignores the body and its encoding', async () => {
  const key = await loaded({})
  const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip' }
  expect((await authorize(key, 'm1', { method: 'POST', headers, body: 'not json' })).status).toBe(204)
})

test('keeps the connection open after a response without a body', async () => {
  const key = await loaded({})
  const request = `GET ${PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.secret}\r\nx-keyward-license: ${key}\r\nx-keyward-machine: m1\r\n\r\n`
  await authorize(key) // takes the slot, so that the next requests do not wait for Postgres
  const enough = (text: string) => text.includes('NOT_FOUND')
  const { text } = await raw(validator.port, request + request.replace(key, 'unknown'), { enough })
  expect(text.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 204', 'HTTP/1.1 403'])
})

test('records the checks', async () => {
  const key = await loaded({})
  await authorize(key)
  const count = async () =>
    (
      await world.database.pool.query<{ n: number }>(
        `select coalesce(sum(count), 0)::int as n from check_counts where code = 'VALID'`,
      )
    ).rows[0]?.n ?? 0
  await expect.poll(count).toBeGreaterThan(0)
})
