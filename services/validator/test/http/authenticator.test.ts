import { createSecret } from '@keyward/database'
import { insertApiKey, insertLicense, insertOrganization, insertSigningKey } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World, someText, matching } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const V1 = '/api/v1/validate'
let world: World
let validator: RunningValidator
let license: string

beforeAll(async () => {
  world = await createWorld()
  license = (await world.license({ maxMachines: null })).key
  validator = await startLoaded(world.database.url)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const check = (authorization?: string): Promise<Reply> =>
  send(validator.port, V2, {
    body: { license },
    ...(authorization === undefined ? {} : { headers: { authorization } }),
  })

test('returns 401 without a valid API key', async () => {
  const stranger = createSecret('API_KEY').secret
  for (const header of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    `Basic ${world.secret}`,
    world.secret,
    `Bearer ${world.secret}x`,
    `Bearer ${world.secret.slice(0, -1)}`,
    `Bearer ${world.secret.toUpperCase()}`,
    `Bearer ${stranger}`,
    `Bearer ${createSecret('MANAGEMENT_TOKEN').secret}`,
    `Bearer ${createSecret('ACCESS_TOKEN').secret}`,
    `Bearer kwk_${'a'.repeat(36)}`,
    `Bearer ${'x'.repeat(2_000)}`,
  ]) {
    const reply = await check(header)
    expect([reply.status, reply.body], header).toEqual([401, { status: 401, message: someText, code: 'UNAUTHORIZED' }])
    expect(reply.headers['www-authenticate']).toBe('Bearer')
  }
  const onV1 = await send(validator.port, V1, { body: { licenseKey: license } })
  expect([onV1.status, onV1.body]).toEqual([401, { code: 'UNAUTHORIZED', detail: someText }])
})

test('describes the error in the credential', async () => {
  const messageFor = async (header?: string): Promise<unknown> => {
    const { text } = await check(header)
    expect(text).not.toContain(world.secret)
    return text
  }
  for (const [header, part] of [
    [undefined, 'no credential. Send the API key in the header \\"Authorization: Bearer kwk_...\\"'],
    [world.secret, 'has no scheme'],
    [`Basic ${world.secret}`, 'has the scheme Basic'],
    ['<script> x', 'has an invalid scheme'],
    ['Bearer', 'has no API key'],
    [`Bearer ${createSecret('MANAGEMENT_TOKEN').secret}`, 'management token (kwm_...)'],
    [`Bearer ${createSecret('ACCESS_TOKEN').secret}`, 'personal access token (kwp_...)'],
    [`Bearer ${world.secret}x`, 'mistyped or incomplete'],
    ['Bearer eyJhbGciOi.x.y', 'is not an API key'],
    [`Bearer ${createSecret('API_KEY').secret}`, 'unknown, revoked or expired'],
  ])
    expect(await messageFor(header), header).toContain(part)
})

test('accepts the scheme Bearer in upper and lower case', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER'])
    expect((await check(`${scheme} ${world.secret}`)).status).toBe(200)
})

test('checks the credential before the body', async () => {
  expect((await send(validator.port, V2, { body: 'junk' })).status).toBe(401)
  expect((await send(validator.port, V2, { body: 'junk', secret: world.secret })).status).toBe(422)
})

test('accepts an API key that is created later, until the key is revoked or deleted', async () => {
  const { pool } = world.database
  for (const end of [
    'update credentials set revoked_at = now() where id = $1',
    'delete from credentials where id = $1',
  ]) {
    const { id, secret } = await insertApiKey(pool, { organizationId: world.organizationId })
    await until(async () => (await check(`Bearer ${secret}`)).status === 200)
    await pool.query(end, [id])
    await until(async () => (await check(`Bearer ${secret}`)).status === 401)
    expect((await check(`Bearer ${secret}`)).status).toBe(401)
  }
})

test('rejects an API key from its expiry on, without a change in Postgres', async () => {
  const { pool } = world.database
  const { organizationId } = world
  const past = await insertApiKey(pool, { organizationId, expiresAt: new Date(Date.now() - 1) })
  const soon = await insertApiKey(pool, { organizationId, expiresAt: new Date(Date.now() + 1_500) })
  await until(async () => (await check(`Bearer ${soon.secret}`)).status === 200)
  expect((await check(`Bearer ${past.secret}`)).status).toBe(401)
  await until(async () => (await check(`Bearer ${soon.secret}`)).status === 401)
})

test('rejects a management token', async () => {
  const { secret } = await insertApiKey(world.database.pool, {
    organizationId: world.organizationId,
    kind: 'MANAGEMENT_TOKEN',
  })
  const later = await insertApiKey(world.database.pool, { organizationId: world.organizationId })
  await until(async () => (await check(`Bearer ${later.secret}`)).status === 200)
  expect((await check(`Bearer ${secret}`)).status).toBe(401)
})

test("returns NOT_FOUND for another organization's license", async () => {
  const { pool } = world.database
  const organizationId = await insertOrganization(pool)
  const other = await insertApiKey(pool, { organizationId })
  const own = await insertLicense(pool, { organizationId, key: license, maxMachines: null, status: 'suspended' })
  expect(own.key).toBe(license)
  await until(async () => (await check(`Bearer ${other.secret}`)).status !== 401)
  await until(async () => (await check(`Bearer ${other.secret}`)).text.includes('SUSPENDED'))
  const valid = { valid: true, status: 200, message: 'The license is valid.', code: 'VALID', expiresAt: null }
  expect((await check(`Bearer ${world.secret}`)).body).toEqual(valid)
  const theirs = await insertLicense(pool, { organizationId, maxMachines: null })
  const body = { license: theirs.key }
  await until(async () => (await send(validator.port, V2, { body, secret: other.secret })).status === 200)
  expect((await send(validator.port, V2, { body, secret: world.secret })).body).toEqual({
    valid: false,
    status: 400,
    message: 'No license with this key exists.',
    code: 'NOT_FOUND',
  })
})

test('returns the current public key, and all public keys in force', async () => {
  const { pool } = world.database
  const get = (path: string, method = 'GET'): Promise<Reply> =>
    send(validator.port, path, { method, secret: world.secret })
  expect((await get('/api/v1/public-keys')).body).toEqual({ keys: [] })
  const first = await insertSigningKey(pool, { organizationId: world.organizationId, keyId: 'first' })
  await until(async () => (await get('/api/v1/public-key')).text.includes('"first"'))
  expect((await get('/api/v1/public-key')).body).toEqual({
    keyId: 'first',
    algorithm: 'Ed25519',
    publicKey: `MCowBQYDK2VwAyEA${Buffer.alloc(32, 7).toString('base64')}`,
  })
  const head = await get('/api/v1/public-key', 'HEAD')
  expect([head.status, head.text]).toEqual([200, ''])
  expect(Number(head.headers['content-length'])).toBe((await get('/api/v1/public-key')).text.length)
  expect((await send(validator.port, '/api/v1/public-key', { method: 'GET' })).status).toBe(401)

  await pool.query('update signing_keys set retired_at = now() where id = $1', [first.id])
  await insertSigningKey(pool, { organizationId: world.organizationId, keyId: 'second' })
  await until(async () => (await get('/api/v1/public-key')).text.includes('"second"'))
  expect((await get('/api/v1/public-keys')).body).toMatchObject({
    keys: [
      { keyId: 'second', retiredAt: null, createdAt: matching(/^\d{4}-.*\.\d{3}Z$/) },
      { keyId: 'first', retiredAt: matching(/Z$/) },
    ],
  })
  await pool.query('update signing_keys set withdrawn_at = now() where id = $1', [first.id])
  await until(async () => !(await get('/api/v1/public-keys')).text.includes('"first"'))
})

test('rejects a cached secret after its row has received another secret', async () => {
  const { id, secret } = await insertApiKey(world.database.pool, { organizationId: world.organizationId })
  const next = createSecret('API_KEY')
  await until(async () => (await check(`Bearer ${secret}`)).status === 200)
  await world.database.pool.query('update credentials set secret_hash = $2 where id = $1', [id, next.hash])
  await until(async () => (await check(`Bearer ${next.secret}`)).status === 200)
  expect((await check(`Bearer ${secret}`)).status).toBe(401)
})
