/** Tests the path of public keys from the change feed to each worker. */

import { insertSigningKey, isBehindBalancer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { PublicKeyPublisher } from '../../src/public-keys/publisher.ts'
import { PublicKeyReplica } from '../../src/public-keys/replica.ts'
import { PublicKeyStore, type SigningKeyChange } from '../../src/public-keys/store.ts'
import { Control } from '../../src/shared/control.ts'
import type { RunningValidator } from '../../src/validator.ts'
import { responses, createWorld, raw, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.url, { workers: 2 })
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const ACME = '01'.repeat(16)

function signingKey(
  n: number,
  given: { retiredAtMs?: number; withdrawnAtMs?: number; preparedAtMs?: number; delegations?: string } = {},
): SigningKeyChange {
  const row = { id: id(n), organizationId: id(1), keyId: `key-${n}`, publicKey: new Uint8Array(32).fill(n) }
  const never = { retiredAtMs: Infinity, withdrawnAtMs: Infinity, preparedAtMs: Infinity }
  return { id: id(n), row: { ...row, createdAtMs: n, delegations: '{}', ...never, ...given } }
}

test('returns every published change at once, even from a replica that was opened later', () => {
  const control = new Control()
  const store = new PublicKeyStore('')
  const publisher = new PublicKeyPublisher(store, control)
  const early = new PublicKeyReplica(publisher.open(), control)
  const published = (replica: PublicKeyReplica, nowMs = 5): { current: string | null; all: unknown } => {
    const { current, all } = replica.bodies(ACME, nowMs)
    const text = (body: Uint8Array): string => Buffer.from(body).toString()
    const keyIds = [...text(all).matchAll(/"keyId":"([^"]+)"/g)].map(([, keyId]) => keyId)
    return { current: current && text(current), all: keyIds }
  }
  expect(published(early)).toEqual({ current: null, all: [] })
  // All steps run in one turn of the event loop, so no message has been delivered.
  store.apply([signingKey(2)])
  expect(published(early)).toMatchObject({ current: expect.stringContaining('"key-2"') as unknown, all: ['key-2'] })
  store.apply([signingKey(2, { retiredAtMs: 3 }), signingKey(3)])
  const late = new PublicKeyReplica(publisher.open(), control)
  for (const replica of [early, late])
    expect(published(replica)).toMatchObject({
      current: expect.stringContaining('"key-3"') as unknown,
      all: ['key-3', 'key-2'],
    })
  // A key is listed until its last file has expired. Cached bodies must not be returned after that.
  const DAY_MS = 86_400_000
  for (const replica of [early, late]) {
    expect(published(replica, 366 * DAY_MS).all).toEqual(['key-3', 'key-2'])
    expect(published(replica, 368 * DAY_MS).all).toEqual(['key-3'])
  }
  store.apply([signingKey(3, { withdrawnAtMs: 4 })])
  for (const replica of [early, late]) expect(published(replica, 368 * DAY_MS)).toEqual({ current: null, all: [] })
  store.apply([signingKey(3)])
  store.apply([signingKey(2, { retiredAtMs: 3, withdrawnAtMs: 4 })])
  for (const replica of [early, late]) expect(published(replica).all).toEqual(['key-3'])
  // A prepared key is listed without a time limit, and is not current before it is used.
  const year = 366 * DAY_MS
  store.apply([signingKey(4, { preparedAtMs: 4, retiredAtMs: 4 })])
  for (const replica of [early, late])
    expect(published(replica, year)).toEqual({
      current: expect.stringContaining('key-3') as unknown,
      all: ['key-4', 'key-3'],
    })
  store.apply([signingKey(3, { retiredAtMs: year }), signingKey(4)])
  for (const replica of [early, late])
    expect(published(replica, year)).toMatchObject({ current: expect.stringContaining('key-4') as unknown })
  store.apply([signingKey(4, { preparedAtMs: 4, retiredAtMs: 4, withdrawnAtMs: 5 }), signingKey(3)])
  for (const replica of [early, late]) expect(published(replica, year).all).toEqual(['key-3'])
  // This reload contains another key and lacks the earlier keys.
  store.beginReload()
  store.apply([signingKey(5)])
  store.endReload()
  const reopened = new PublicKeyReplica(publisher.open(), control)
  for (const replica of [early, late, reopened]) expect(published(replica).all).toEqual(['key-5'])
})

test.skipIf(isBehindBalancer)('responds to pipelined checks and requests for public keys', async () => {
  const { pool } = world.database
  await insertSigningKey(pool, { organizationId: world.organizationId, keyId: 'first' })
  const { key } = await world.license({ maxMachines: null })
  const body = { license: key }
  await until(async () => (await send(validator.port, V2, { body, secret: world.secret })).status === 200)
  const message = (method: string, path: string, text = ''): string =>
    `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\n` +
    `${text === '' ? '' : `Content-Length: ${text.length}\r\n`}\r\n${text}`
  const check = message('POST', V2, JSON.stringify(body))
  const packet = check + message('GET', '/api/v1/public-key') + message('GET', '/api/v1/public-keys') + check
  // The two packets use connections to different workers.
  const sendPacket = () => raw(validator.port, packet, { enough: responses(4) })
  for (const { text, closed } of await Promise.all([sendPacket(), sendPacket()])) {
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '200', '200', '200'])
    expect(text).toMatch(/"VALID".*"keyId":"first".*\{"keys":\[\{"keyId":"first".*"VALID"/s)
    expect(closed).toBe(false)
  }
})
