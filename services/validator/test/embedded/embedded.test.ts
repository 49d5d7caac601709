import { createServer } from 'node:net'

import type { EmbeddedCheck, VerdictV1 } from '@keyward/contract/validation'
import { insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { EmbeddedError, type EmbeddedValidator, openEmbedded } from '../../src/embedded/embedded.ts'
import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, send, startLoaded, until, type World } from '../harness.ts'

let world: World
/** A validator with the same database, whose verdicts are the expected ones. */
let validator: RunningValidator
let embedded: EmbeddedValidator

const variables = (given: Record<string, string> = {}): Record<string, string> => ({
  VALIDATOR_DATABASE_URL: world.database.validatorUrl,
  VALIDATOR_ADMIN_PORT: '0',
  LOG_LEVEL: 'silent',
  ...given,
})

async function open(apiKey = world.secret): Promise<EmbeddedValidator> {
  const opened = await openEmbedded({ apiKey, variables: variables(), reserve: 'small' })
  await opened.loaded
  return opened
}

beforeAll(async () => {
  world = await createWorld()
  ;[validator, embedded] = await Promise.all([startLoaded(world.database.validatorUrl), open()])
})
afterAll(async () => {
  await Promise.all([validator.close(), embedded.close()])
  await world.database.drop()
})

const errorOf = async (act: () => unknown): Promise<EmbeddedError['code'] | null> => {
  try {
    await act()
    return null
  } catch (error) {
    return error instanceof EmbeddedError ? error.code : null
  }
}

/** Repeats a check that has no verdict, because Postgres may respond late on a busy machine. */
async function verdictOf(check: EmbeddedCheck): Promise<VerdictV1> {
  for (;;) {
    try {
      return await embedded.check(check)
    } catch (error) {
      if (!(error instanceof EmbeddedError) || error.code !== 'UNAVAILABLE') throw error
    }
  }
}

/** Returns the body of the other validator's verdict, and repeats a check that has none. */
async function expectedOf(body: object, headers: Record<string, string> = {}): Promise<unknown> {
  for (;;) {
    const reply = await send(validator.port, '/api/v1/validate', { body, headers, secret: world.secret })
    if (reply.status !== 503) return reply.body
  }
}

test('returns the verdicts of POST /api/v1/validate', async () => {
  const { pool } = world.database
  const { organizationId } = world
  const future = new Date('2100-02-03T04:05:06.789Z')
  const past = new Date('2001-01-01T00:00:00Z')
  const free = { maxMachines: null }
  const licenses = await Promise.all([
    world.license(free),
    world.license({ ...free, expiresAt: future, entitlements: { edition: 'pro', seats: 5 } }),
    world.license({ ...free, expiresAt: past }),
    world.license({ ...free, expiresAt: new Date(Date.now() - 86_400_000), graceDays: 30 }),
    world.license({ ...free, status: 'suspended' }),
    world.license({ ...free, status: 'revoked' }),
    world.license({ maxMachines: 2, expiresAt: future }),
    world.license({ maxMachines: 1, leaseSeconds: 3600 }),
    world.license({ ...free, durationDays: 30 }),
  ])
  const rule = { organizationId, kind: 'BLACKLIST', scope: 'ORGANIZATION' } as const
  await insertRule(pool, { ...rule, type: 'IP', value: '203.0.113.0/24' })
  await insertRule(pool, { ...rule, type: 'COUNTRY', value: 'KP' })
  await insertRule(pool, { ...rule, type: 'HWID', value: 'stolen' })
  const callers = [
    {},
    { machineId: 'laptop', hostname: 'Ada' },
    { machineId: 'second' },
    { machineId: 'third' },
    { machineId: 'stolen' },
    { machineId: 'laptop', ip: '203.0.113.9' },
    { machineId: 'laptop', ip: '2001:db8::1', country: 'kp' },
    { machineId: 'laptop', ip: '192.0.2.1', country: 'DE', include: ['entitlements'] as const },
  ]
  const last = licenses.at(-1)?.key ?? ''
  await until(async () => {
    const { code } = await verdictOf({ licenseKey: last, machineId: 'stolen' })
    const other = await expectedOf({ licenseKey: last, fingerprint: 'stolen' })
    return code === 'BLACKLISTED' && JSON.stringify(other).includes('BLACKLISTED')
  })
  const codes = new Set<string>()
  for (const licenseKey of [...licenses.map(({ key }) => key), 'unknown', 'k'.repeat(200)])
    for (const { machineId, hostname, ip, country, include } of callers) {
      const verdict = await verdictOf({
        licenseKey,
        machineId,
        hostname,
        ip,
        country,
        include: include && [...include],
      })
      const expected = await expectedOf(
        { licenseKey, fingerprint: machineId, hostname, include },
        { 'x-forwarded-for': ip ?? '127.0.0.1', ...(country !== undefined && { 'x-country': country }) },
      )
      expect(verdict, JSON.stringify({ licenseKey, machineId, ip, country })).toEqual(expected)
      codes.add(verdict.code)
    }
  expect([...codes].toSorted()).toEqual([
    'BLACKLISTED',
    'EXPIRED',
    'FINGERPRINT_REQUIRED',
    'NOT_FOUND',
    'REVOKED',
    'SUSPENDED',
    'TOO_MANY_MACHINES',
    'VALID',
  ])
})

test('decides known machines at once, and waits for Postgres only to claim a slot', async () => {
  const { key } = await world.license({ maxMachines: 1 })
  const check = { licenseKey: key, machineId: 'first' }
  await until(async () => (await verdictOf(check)).valid)
  expect(embedded.check(check)).toEqual({ valid: true, code: 'VALID', expiresAt: null })
  const [second, third] = ['second', 'third'].map((machineId) => verdictOf({ licenseKey: key, machineId }))
  expect(await second).toMatchObject({ code: 'TOO_MANY_MACHINES', machines: { used: 1, max: 1 } })
  expect(await third).toMatchObject({ code: 'TOO_MANY_MACHINES', machines: { used: 1, max: 1 } })
})

test('never has more machines than slots, together with another validator', async () => {
  const { key } = await world.license({ maxMachines: 3 })
  await until(async () => (await verdictOf({ licenseKey: key, machineId: 'm0' })).valid)
  const machines = Array.from({ length: 20 }, (_, i) => `m${i + 1}`)
  const codes = await Promise.all(
    machines.map(async (machineId, i) => {
      if (i % 2 === 0) return (await verdictOf({ licenseKey: key, machineId })).code
      return await expectedOf({ licenseKey: key, fingerprint: machineId })
    }),
  )
  expect(codes.filter((code) => JSON.stringify(code).includes('VALID'))).toHaveLength(2)
})

test('rejects invalid checks with the name of the member', async () => {
  const { key } = await world.license({ maxMachines: null })
  const invalid: [given: unknown, message: RegExp][] = [
    [null, /object/],
    [{}, /^licenseKey: /],
    [{ licenseKey: '' }, /^licenseKey: /],
    [{ licenseKey: '\ud800' }, /^licenseKey: must be well-formed Unicode/],
    [{ licenseKey: key, machineId: 'm'.repeat(513) }, /^machineId: must be at most 512 bytes/],
    [{ licenseKey: key, machineId: 7 }, /^machineId: /],
    [{ licenseKey: key, ip: '1.2.3' }, /^ip: must be an IPv4 or IPv6 address/],
    [{ licenseKey: key, country: 'Germany' }, /^country: must be two letters/],
    [{ licenseKey: key, fingerprint: 'm' }, /fingerprint/],
  ]
  for (const [given, message] of invalid) {
    const check = (): unknown => Reflect.apply((one: EmbeddedCheck) => embedded.check(one), null, [given])
    expect(check, JSON.stringify(given)).toThrow(message)
    expect(await errorOf(check)).toBe('INVALID_REQUEST')
  }
})

test('writes the usage of its checks, and decides no check after the end', async () => {
  const { key, id } = await world.license({ maxMachines: null })
  const own = await open()
  await until(async () => (await own.check({ licenseKey: key, machineId: 'm' })).valid)
  for (let i = 0; i < 49; i++) await own.check({ licenseKey: key, machineId: 'm' })
  await own.close()
  const { rows } = await world.database.pool.query(
    `select sum(count)::int as count from activity where license_id = $1 and code = 'VALID'`,
    [id],
  )
  expect(rows).toEqual([{ count: 50 }])
  expect(await errorOf(() => own.check({ licenseKey: key }))).toBe('UNAVAILABLE')
})

test('fails with UNAUTHORIZED for an unknown API key, and with UNAVAILABLE before the index is loaded', async () => {
  const own = await openEmbedded({ apiKey: 'kwk_unknown', variables: variables(), reserve: 'small' })
  const codes: unknown[] = []
  await until(async () => {
    codes.push(await errorOf(() => own.check({ licenseKey: 'k' })))
    return codes.at(-1) !== 'UNAVAILABLE'
  })
  expect(codes.at(-1)).toBe('UNAUTHORIZED')
  await own.close()
})

test('names an invalid variable, and a port that is in use', async () => {
  const invalid = { apiKey: world.secret, variables: { VALIDATOR_DATABASE_URL: 'nowhere' } }
  await expect(openEmbedded(invalid)).rejects.toThrow('VALIDATOR_DATABASE_URL must be')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? String(address?.port) : ''
  const taken = openEmbedded({
    apiKey: world.secret,
    variables: variables({ VALIDATOR_ADMIN_PORT: port }),
    reserve: 'small',
  })
  await expect(taken).rejects.toThrow(port)
  server.close()
})
