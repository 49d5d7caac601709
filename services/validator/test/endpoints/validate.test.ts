import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, someText, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const V1 = '/api/v1/validate'
const ACTIVATE = '/api/v1/activate'

let world: World
let validator: RunningValidator
let key: Record<'valid' | 'perpetual' | 'suspended' | 'revoked' | 'expired' | 'full' | 'free', string>
const EXPIRES = new Date('2100-02-03T04:05:06.789Z')

beforeAll(async () => {
  world = await createWorld()
  const keyOf = async (given: Parameters<World['license']>[0]): Promise<string> => (await world.license(given)).key
  key = {
    valid: await keyOf({ expiresAt: EXPIRES, maxMachines: 100 }),
    perpetual: await keyOf({ maxMachines: 100 }),
    suspended: await keyOf({ status: 'suspended' }),
    revoked: await keyOf({ status: 'revoked' }),
    expired: await keyOf({ expiresAt: new Date('2001-01-01T00:00:00Z') }),
    full: await keyOf({ maxMachines: 1 }),
    free: await keyOf({ maxMachines: null }),
  }
  validator = await startLoaded(world.database.url)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const v2 = (body: unknown): Promise<Reply> => send(validator.port, V2, { body, secret: world.secret })
const v1 = (body: unknown, path = V1): Promise<Reply> => send(validator.port, path, { body, secret: world.secret })

describe('verdicts', () => {
  test('returns VALID with the expiry on v1 and v2', async () => {
    const reply = await v2({ license: key.valid, fingerprint: 'm1' })
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe('application/json')
    expect(reply.text).toBe(
      '{"valid":true,"status":200,"message":"The license is valid.","code":"VALID","expiresAt":"2100-02-03T04:05:06.789Z"}',
    )
    for (const path of [V1, ACTIVATE]) {
      const onV1 = await v1({ licenseKey: key.valid, fingerprint: 'm1', hostname: 'build-7' }, path)
      expect(onV1.status).toBe(200)
      expect(onV1.text).toBe('{"valid":true,"code":"VALID","expiresAt":"2100-02-03T04:05:06.789Z"}')
    }
  })

  test('returns VALID with expiresAt null for a perpetual license', async () => {
    expect((await v2({ license: key.perpetual, hwid: 'm1' })).body).toEqual({
      valid: true,
      status: 200,
      message: 'The license is valid.',
      code: 'VALID',
      expiresAt: null,
    })
    expect((await v1({ licenseKey: key.perpetual, fingerprint: 'm1' })).body).toEqual({
      valid: true,
      code: 'VALID',
      expiresAt: null,
    })
  })

  test.each([
    ['NOT_FOUND', 'No license with this key exists.', () => 'no-such-key'],
    ['NOT_FOUND', 'No license with this key exists.', () => 'k'.repeat(2_000)],
    ['REVOKED', 'The license has been revoked.', () => key.revoked],
    ['SUSPENDED', 'The license is suspended.', () => key.suspended],
    ['EXPIRED', 'The license has expired.', () => key.expired],
    ['FINGERPRINT_REQUIRED', 'This license needs a machine id.', () => key.valid],
  ])('returns %s with the message "%s"', async (code, message, license) => {
    const reply = await v2({ license: license() })
    expect(reply.status).toBe(400)
    expect(reply.body).toEqual({ valid: false, status: 400, message, code })
    const onV1 = await v1({ licenseKey: license() })
    expect(onV1.status).toBe(200)
    expect(onV1.body).toEqual({ valid: false, code, detail: message })
  })

  test('returns TOO_MANY_MACHINES, with the number of machines on v1', async () => {
    expect((await v2({ license: key.full, fingerprint: 'first' })).status).toBe(200)
    const message = 'The license is already active on the maximum number of machines.'
    for (let round = 0; round < 3; round++) {
      const reply = await v2({ license: key.full, fingerprint: 'second' })
      expect(reply.status).toBe(400)
      expect(reply.body).toEqual({ valid: false, status: 400, message, code: 'TOO_MANY_MACHINES' })
      expect((await v1({ licenseKey: key.full, fingerprint: 'second' })).body).toEqual({
        valid: false,
        code: 'TOO_MANY_MACHINES',
        detail: message,
        machines: { used: 1, max: 1 },
      })
    }
    expect((await v2({ license: key.full, fingerprint: 'first' })).status).toBe(200)
  })

  test('returns VALID without a machine id for a license without a limit', async () => {
    expect((await v2({ license: key.free })).status).toBe(200)
    expect((await v2({ license: key.free, fingerprint: 'm' })).status).toBe(200)
  })
})

test('keeps the machines of a license whose key is replaced or exchanged with another license', async () => {
  const { pool } = world.database
  const [one, two] = [await world.license({ maxMachines: 1 }), await world.license({ maxMachines: 1 })]
  const code = async (license: string, fingerprint: string): Promise<unknown> => {
    const { body } = await v2({ license, fingerprint })
    return typeof body === 'object' && body !== null && 'code' in body ? body.code : undefined
  }
  await until(async () => (await code(two.key, 'machine 2')) === 'VALID')
  expect(await code(one.key, 'machine 1')).toBe('VALID')
  await pool.query('update licenses set key = $2 where id = $1', [one.id, 'replaced'])
  await until(async () => (await code('replaced', 'machine 1')) === 'VALID')
  expect(await code(one.key, 'machine 1')).toBe('NOT_FOUND')
  expect(await code('replaced', 'machine 2')).toBe('TOO_MANY_MACHINES')
  const client = await pool.connect()
  await client.query('begin')
  for (const [id, becomes] of [
    [one.id, 'in between'],
    [two.id, 'replaced'],
    [one.id, two.key],
  ])
    await client.query('update licenses set key = $2 where id = $1', [id, becomes])
  await client.query('commit')
  client.release()
  await until(async () => (await code(two.key, 'machine 1')) === 'VALID')
  expect(await code('replaced', 'machine 2')).toBe('VALID')
  expect(await code('in between', 'machine 1')).toBe('NOT_FOUND')
})

describe('machine ids', () => {
  test('reads the machine id from the first present field of fingerprint, hwid, host and macAddress', async () => {
    const license = await world.license({ maxMachines: 1 })
    const holds = { license: license.key, fingerprint: 'the machine' }
    await expect.poll(async () => (await v2(holds)).status).toBe(200)
    const is = async (body: object): Promise<boolean> => (await v2({ license: license.key, ...body })).status === 200
    expect(await is({ hwid: 'the machine' })).toBe(true)
    expect(await is({ host: 'the machine' })).toBe(true)
    expect(await is({ macAddress: 'the machine' })).toBe(true)
    expect(await is({ fingerprint: 'x', hwid: 'the machine' })).toBe(false)
    expect(await is({ macAddress: 'x', host: 'the machine' })).toBe(true)
    expect(await is({ host: 'x', hwid: 'the machine' })).toBe(true)
    expect(await is({ fingerprint: null, hwid: '', host: 'the machine' })).toBe(true)
    expect(await is({ fingerprint: 'the machine', hwid: 7, host: null, macAddress: 'm'.repeat(600) })).toBe(true)
    expect(await is({ fingerprint: ' the machine' })).toBe(false)
    expect(await is({ fingerprint: 'THE MACHINE' })).toBe(false)
    expect((await v2({ license: license.key, fingerprint: '', hwid: null })).body).toEqual({
      valid: false,
      status: 400,
      message: 'This license needs a machine id.',
      code: 'FINGERPRINT_REQUIRED',
    })
  })

  test('compares machine ids byte for byte', async () => {
    const { key: license } = await world.license({ maxMachines: 1 })
    await expect.poll(async () => (await v2({ license, fingerprint: 'caf\u00e9' })).status).toBe(200)
    expect((await v2(`{"license":"${license}","fingerprint":"caf\\u00e9"}`)).status).toBe(200)
    expect((await v2({ license, fingerprint: 'cafe\u0301' })).body).toEqual({
      valid: false,
      status: 400,
      message: 'The license is already active on the maximum number of machines.',
      code: 'TOO_MANY_MACHINES',
    })
    expect((await v2({ license, fingerprint: 'caf\u00e9'.normalize('NFD') })).status).toBe(400)
  })

  test('accepts machine ids of up to 512 bytes with any characters, including NUL', async () => {
    const { key: license } = await world.license({ maxMachines: 10 })
    await expect.poll(async () => (await v2({ license, fingerprint: 'm'.repeat(512) })).status).toBe(200)
    expect((await v2({ license, fingerprint: 'é'.repeat(256) })).status).toBe(200)
    expect((await v2({ license, fingerprint: 'a\u0000b' })).status).toBe(200)
    expect((await v1({ licenseKey: license, fingerprint: 'with host', hostname: 'h\u0000é' })).status).toBe(200)
  })
})

describe('the validation of bodies', () => {
  const invalid2 = { status: 422, message: someText, code: 'INVALID_REQUEST' }
  const invalid1 = { code: 'INVALID_REQUEST', detail: someText }

  test.each([
    ['an empty body', ''],
    ['a body that is not JSON', 'license=abc'],
    ['incomplete JSON', '{"license":"a"'],
    ['two JSON values', '{"license":"a"}{"license":"a"}'],
    ['an array', '["a"]'],
    ['a string', '"a"'],
    ['null', 'null'],
    ['a body without a key', '{}'],
    ['a key that is null', '{"license":null,"licenseKey":null}'],
    ['a key that is a number', '{"license":1,"licenseKey":1}'],
    ['a key that is an object', '{"license":{},"licenseKey":{}}'],
    ['an empty key', '{"license":"","licenseKey":""}'],
    ['a machine id that is a number', '{"license":"a","licenseKey":"a","fingerprint":1}'],
    ['a machine id that is a boolean', '{"license":"a","licenseKey":"a","fingerprint":false}'],
    ['a machine id of 513 bytes', JSON.stringify({ license: 'a', licenseKey: 'a', fingerprint: 'm'.repeat(513) })],
    [
      'a machine id of 257 two-byte letters',
      JSON.stringify({ license: 'a', licenseKey: 'a', fingerprint: 'é'.repeat(257) }),
    ],
    ['a lone surrogate in the machine id', '{"license":"a","licenseKey":"a","fingerprint":"\\ud800"}'],
    ['a lone surrogate in the key', '{"license":"\\udfff","licenseKey":"\\udfff"}'],
    ['invalid UTF-8', Buffer.from('{"license":"\xff","licenseKey":"\xff"}', 'latin1')],
    ['an overlong encoding', Buffer.from('{"license":"\xc0\x80","licenseKey":"\xc0\x80"}', 'latin1')],
  ])('returns 422 for %s', async (_name, body) => {
    const reply = await v2(body)
    expect(reply.status).toBe(422)
    expect(reply.body).toEqual(invalid2)
    const onV1 = await v1(body)
    expect(onV1.status).toBe(422)
    expect(onV1.body).toEqual(invalid1)
  })

  test('returns 422 for a hostname that has 513 bytes or is not a string', async () => {
    for (const hostname of ['h'.repeat(513), 7, {}]) {
      const reply = await v1({ licenseKey: key.valid, fingerprint: 'm1', hostname })
      expect([reply.status, reply.body]).toEqual([422, invalid1])
    }
    for (const hostname of [null, ''])
      expect((await v1({ licenseKey: key.valid, fingerprint: 'm1', hostname })).status).toBe(200)
  })

  test('uses the last of repeated members, and ignores unknown members', async () => {
    expect((await v2(`{"license":"x","license":"${key.free}"}`)).status).toBe(200)
    expect((await v2(`{"license":"${key.free}","license":"x"}`)).status).toBe(400)
    expect((await v2({ license: key.free, other: [1, { deep: true }], valid: true })).status).toBe(200)
  })

  test('accepts any content type', async () => {
    const body = { license: key.free }
    const headers = { 'content-type': 'text/plain' }
    expect((await send(validator.port, V2, { body, headers, secret: world.secret })).status).toBe(200)
  })

  test('returns 413 for a body over 16 KiB', async () => {
    const padded = (bytes: number): string => {
      const start = `{"license":"${key.free}","pad":"`
      return `${start}${'p'.repeat(bytes - start.length - 2)}"}`
    }
    expect((await v2(padded(16 * 1024))).status).toBe(200)
    const reply = await v2(padded(16 * 1024 + 1))
    expect([reply.status, reply.body]).toEqual([413, { status: 413, message: someText, code: 'PAYLOAD_TOO_LARGE' }])
    const onV1 = await v1(padded(16 * 1024 + 1))
    expect([onV1.status, onV1.body]).toEqual([413, { code: 'PAYLOAD_TOO_LARGE', detail: someText }])
  })
})
