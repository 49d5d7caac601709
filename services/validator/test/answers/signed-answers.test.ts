import { Agent } from 'node:http'

import { createSigningKey, delegate, isBehindBalancer, type SigningKey } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, raw, type Reply, responses, send, startLoaded, until, type World } from '../harness.ts'
import { askSigned, verify } from './signed-requests.ts'

const V1 = '/api/v1/validate'
const V2 = '/api/v2/license/validate'
const ACTIVATE = '/api/v1/activate'
const BATCH = '/api/v2/license/validate/batch'
const DEACTIVATE = '/api/v1/deactivate'

let world: World
let validator: RunningValidator
let key: SigningKey
let license: { key: string }

beforeAll(async () => {
  world = await createWorld()
  license = await world.license({ maxMachines: 1 })
  validator = await startLoaded(world.database.url, { workers: 2, corsOrigins: ['https://app.example.com'] })
  key = await createSigningKey(world.database.pool, world.organizationId)
  await delegate(world.database.pool, key)
  await until(async () => isSigned(await askFor(V2, { license: 'none' })))
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const isSigned = ({ headers }: Reply): boolean => headers['keyward-signature'] !== undefined
const askFor = (path: string, body: object, by = key) => askSigned(validator, path, by, { body, secret: world.secret })

/** Sends a request that asks for a signature. Returns the outcome of the verification, and the body of the response. */
async function signed(path: string, body: object): Promise<[string, unknown]> {
  const reply = await askFor(path, body)
  return [await verify(key, path, world.secret, reply), reply.body]
}

test('signs valid and rejected checks of every endpoint, also those that wait for a slot', async () => {
  const v1 = { licenseKey: license.key, fingerprint: 'm-1' }
  const v2 = { license: license.key, fingerprint: 'm-1' }
  const signedWith = (fields: object): unknown => ['SIGNED', expect.objectContaining(fields)]
  expect(await signed(ACTIVATE, v1)).toEqual(signedWith({ code: 'VALID' }))
  expect(await signed(V1, v1)).toEqual(signedWith({ code: 'VALID' }))
  expect(await signed(V2, v2)).toEqual(signedWith({ code: 'VALID', status: 200 }))
  expect(await signed(V2, { ...v2, fingerprint: 'm-2' })).toEqual(signedWith({ code: 'TOO_MANY_MACHINES' }))
  expect(await signed(V2, { license: 'unknown' })).toEqual(signedWith({ code: 'NOT_FOUND', status: 400 }))
  expect(await signed(DEACTIVATE, v1)).toEqual(['SIGNED', { deactivated: true }])
  expect(await signed(DEACTIVATE, { ...v1, licenseKey: 'unknown' })).toEqual(['SIGNED', { deactivated: false }])
  const ref = '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a02'
  expect(await signed(DEACTIVATE, { licenseKey: license.key, ref })).toEqual(signedWith({ code: 'NOT_ENABLED' }))
})

test('signs a batch as one response, also with a check that waits for a slot', async () => {
  const { key: fresh } = await world.license({ maxMachines: 1 })
  const checks = [{ license: license.key }, { license: fresh, fingerprint: 'm-1' }, { license: 5 }]
  let outcome = await signed(BATCH, { checks })
  await until(async () => JSON.stringify((outcome = await signed(BATCH, { checks }))).includes('"VALID"'))
  expect(outcome).toEqual([
    'SIGNED',
    {
      results: [
        expect.objectContaining({ code: 'FINGERPRINT_REQUIRED' }),
        expect.objectContaining({ code: 'VALID' }),
        expect.objectContaining({ code: 'INVALID_REQUEST' }),
      ],
    },
  ])
})

test('signs the responses of one packet of many connections, each for its own request', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 100 })
  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      askSigned(validator, V2, key, {
        body: { license: license.key, fingerprint: `m-${n}` },
        secret: world.secret,
        agent,
      }),
    ),
  )
  for (const reply of replies) expect(await verify(key, V2, world.secret, reply)).toBe('SIGNED')
  const [first, second] = replies
  expect(await verify(key, V2, world.secret, { ...first!, request: second!.request })).toBe('OTHER_ANSWER')
  expect(await verify(key, V2, `${world.secret}x`, first!)).toBe('OTHER_ANSWER')
  expect(await verify(key, V1, world.secret, first!)).toBe('OTHER_ANSWER')
  expect(await verify(key, V2, world.secret, { ...first!, text: `${first!.text} ` })).toBe('OTHER_ANSWER')
  expect(await verify(key, V2, world.secret, { ...first!, status: 299 })).toBe('OTHER_ANSWER')
  agent.destroy()
})

test('signs many large responses of one turn, each with its own body', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 })
  // The bodies of one turn have more bytes than the memory for their copies.
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) => {
      const checks = Array.from({ length: 100 }, (_each, i) => ({ license: i === n ? 'none' : license.key }))
      return askSigned(validator, BATCH, key, { body: { checks }, secret: world.secret, agent })
    }),
  )
  agent.destroy()
  for (const [n, reply] of replies.entries()) {
    expect(await verify(key, BATCH, world.secret, reply)).toBe('SIGNED')
    const { results } = z.object({ results: z.array(z.object({ code: z.string() })) }).parse(reply.body)
    expect(results.findIndex(({ code }) => code === 'NOT_FOUND')).toBe(n)
  }
})

test.skipIf(isBehindBalancer)('shares one signature among the requests of one turn, at most 64', async () => {
  const request = (n: number): string => {
    const body = JSON.stringify({ license: `none-${n}`, nonce: 'A'.repeat(22), kid: key.keyId })
    return `POST ${V2} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  // The requests are written while the worker is busy with the body of the first one, so it receives them in one turn.
  const sent = Array.from({ length: 150 }, (_, n) => raw(validator.port, request(n), { enough: responses(1) }))
  const statements = new Map<string, number>()
  for (const { text } of await Promise.all(sent)) {
    const [, , statement = '', , path = ''] = /keyward-signature: (.*)\r\n/i.exec(text)?.[1]?.split('.') ?? []
    expect(Buffer.from(path, 'base64url').length).toBeLessThanOrEqual(6 * 33)
    statements.set(statement, (statements.get(statement) ?? 0) + 1)
  }
  expect(Math.max(...statements.values())).toBeGreaterThan(1)
  expect(Math.max(...statements.values())).toBeLessThanOrEqual(64)
})

test('a response that shares its signature with no other has an empty path', async () => {
  const body = JSON.stringify({ license: 'none', nonce: 'A'.repeat(22), kid: key.keyId })
  const one = `POST ${V2} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const { text } = await raw(validator.port, one, { enough: responses(1) })
  expect(text).toMatch(/keyward-signature: [\w-]+\.[\w-]+\.[\w-]+\.[\w-]+\.\r\n/i)
})

test('does not sign errors, nor a response under a key without a delegation', async () => {
  const unauthorized = await askSigned(validator, V2, key, { body: { license: 'none' }, secret: 'kwk_unknown' })
  expect([unauthorized.status, isSigned(unauthorized)]).toEqual([401, false])
  const invalid = await askFor(V2, { license: 5 })
  expect([invalid.status, isSigned(invalid)]).toEqual([422, false])
  const foreign = await askFor(V2, { license: 'none' }, { ...key, keyId: 'foreign' })
  expect([foreign.status, isSigned(foreign)]).toEqual([400, false])
  const other = await createWorld(world.database)
  await until(
    async () => (await send(validator.port, V2, { body: { license: 'x' }, secret: other.secret })).status === 400,
  )
  expect(isSigned(await askSigned(validator, V2, key, { body: { license: 'x' }, secret: other.secret }))).toBe(false)
  expect(isSigned(await send(validator.port, V2, { body: { license: 'none' }, secret: world.secret }))).toBe(false)
})

test('rejects a nonce or a kid that is alone or malformed', async () => {
  const nonce = 'A'.repeat(22)
  for (const [fields, message] of [
    [{ nonce }, '`nonce` and `kid` must be sent together; got a string of 22 bytes.'],
    [{ kid: key.keyId }, '`nonce` and `kid` must be sent together; got nothing.'],
    [{ nonce: `${nonce}A`, kid: key.keyId }, '`nonce` must be 22 base64url characters; got a string of 23 bytes.'],
    [{ nonce, kid: 'a b' }, '`kid` must be the id of a public key; got a string of 3 bytes.'],
    [{ nonce: 1, kid: key.keyId }, '`nonce` must be a string; got a number.'],
  ] as const)
    for (const [path, body, name] of [
      [V2, { license: 'x' }, 'message'],
      [V1, { licenseKey: 'x' }, 'detail'],
      [DEACTIVATE, { licenseKey: 'x', fingerprint: 'm' }, 'detail'],
      [BATCH, { checks: [{ license: 'x' }] }, 'message'],
    ] as const) {
      const reply = await send(validator.port, path, { body: { ...body, ...fields }, secret: world.secret })
      expect([reply.status, reply.body]).toEqual([422, expect.objectContaining({ [name]: message })])
    }
  const both = { license: 'x', nonce: null, kid: null }
  expect((await send(validator.port, V2, { body: both, secret: world.secret })).status).toBe(400)
})

test('pages of an allowed origin may read the signature', async () => {
  const headers = { origin: 'https://app.example.com' }
  const reply = await askSigned(validator, V2, key, { body: { license: 'x' }, secret: world.secret, headers })
  expect(isSigned(reply)).toBe(true)
  expect(reply.headers['access-control-expose-headers']).toBe('date, retry-after, keyward-signature')
})

test('signs under each key with a delegation, and stops when the delegation ends or is removed', async () => {
  const replaced = await createSigningKeyAfter(key)
  await delegate(world.database.pool, replaced)
  await until(async () => isSigned(await askFor(V2, { license: 'x' }, replaced)))
  expect(await signed(V2, { license: 'x' })).toEqual(['SIGNED', expect.anything()])
  const { pool } = world.database
  await pool.query(`update signing_keys set delegations = '{}' where id = $1`, [replaced.id])
  await until(async () => !isSigned(await askFor(V2, { license: 'x' }, replaced)))
  await delegate(pool, replaced, { fromMs: -20_000, untilMs: -10_000 })
  await delegate(pool, key, { untilMs: 1_500 })
  await until(async () => !isSigned(await askFor(V2, { license: 'x' })))
  expect(isSigned(await askFor(V2, { license: 'x' }, replaced))).toBe(false)
  await delegate(pool, key)
  await until(async () => isSigned(await askFor(V2, { license: 'x' })))
})

/** Retires a key, and returns a new current key. */
async function createSigningKeyAfter(before: SigningKey): Promise<SigningKey> {
  await world.database.pool.query('update signing_keys set retired_at = now() where id = $1', [before.id])
  return createSigningKey(world.database.pool, world.organizationId)
}
