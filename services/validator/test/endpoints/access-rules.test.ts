import { insertRule, isBehindBalancer, type RuleToInsert } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.validatorUrl)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

type License = Awaited<ReturnType<World['license']>>

interface From {
  ip?: string
  country?: string
  machineId?: string
  port?: number
}

async function check(license: License, from: From = {}): Promise<string> {
  const headers: Record<string, string> = {}
  if (from.ip !== undefined) headers['x-forwarded-for'] = from.ip
  if (from.country !== undefined) headers['x-country'] = from.country
  const body = { license: license.key, fingerprint: from.machineId }
  const reply: Reply = await send(from.port ?? validator.port, V2, { body, headers, secret: world.secret })
  return /"code":"(\w+)"/.exec(reply.text)?.[1] ?? ''
}

const rule = (given: Omit<RuleToInsert, 'organizationId'>): Promise<string> =>
  insertRule(world.database.pool, { organizationId: world.organizationId, ...given })
const drop = async (...ids: string[]): Promise<void> => {
  await world.database.pool.query('delete from access_rules where id = any ($1)', [ids])
}
const becomes = (code: string, license: License, from?: From): Promise<void> =>
  until(async () => (await check(license, from)) === code)

test('returns the same BLACKLISTED body for every type of rule', async () => {
  const machineId = 'blacklisted machine'
  const country = 'AQ'
  for (const [type, from] of [
    ['HWID', { machineId }],
    ['COUNTRY', { country }],
    ['CUSTOMER', {}],
  ] as const) {
    const license = await world.license({ maxMachines: 1, expiresAt: new Date('2100-01-01T00:00:00Z') })
    const values = { HWID: machineId, COUNTRY: country, CUSTOMER: license.customerId }
    const id = await rule({ licenseId: license.id, type, value: values[type] })
    await becomes('BLACKLISTED', license, from)
    const headers = { 'x-country': country }
    const request = (path: string, body: object): Promise<Reply> =>
      send(validator.port, path, { body, headers, secret: world.secret })
    const v2 = await request(V2, { license: license.key, fingerprint: machineId })
    expect([v2.status, v2.text], type).toEqual([
      400,
      '{"valid":false,"status":400,"message":"This check was refused.","code":"BLACKLISTED"}',
    ])
    for (const path of ['/api/v1/validate', '/api/v1/activate']) {
      const v1 = await request(path, { licenseKey: license.key, fingerprint: machineId, hostname: 'build-7' })
      expect([v1.status, v1.text], type).toEqual([
        200,
        '{"valid":false,"code":"BLACKLISTED","detail":"This check was refused."}',
      ])
    }
    await drop(id)
  }
})

describe('access rules', () => {
  test.skipIf(isBehindBalancer)('matches rules on IPv4 and IPv6 ranges against the forwarded address', async () => {
    const license = await world.license({ maxMachines: null })
    const ids = [await rule({ value: '203.0.113.0/24' }), await rule({ value: '2001:db8:7::/48' })]
    await becomes('BLACKLISTED', license, { ip: '203.0.113.9' })
    await becomes('BLACKLISTED', license, { ip: '2001:db8:7::1' })
    const blacklisted = [
      '203.0.113.255:4711',
      '::ffff:203.0.113.1',
      '2002:cb00:7101::5',
      '64:ff9b::203.0.113.1',
      '::203.0.113.1',
      '[2001:db8:7:ffff::]:443',
      '9.9.9.9, 203.0.113.4',
    ]
    for (const ip of blacklisted) expect(await check(license, { ip }), ip).toBe('BLACKLISTED')
    const others = ['203.0.114.1', '2001:db8:8::1', 'junk', '203.0.113.4, 9.9.9.9', '0203.0.113.9', '203.0.113.9 x']
    for (const ip of others) expect(await check(license, { ip }), ip).toBe('VALID')
    await drop(...ids)
    await becomes('VALID', license, { ip: '203.0.113.9' })
  })

  test('matches rules on countries, and rules on machine ids from every field', async () => {
    const license = await world.license({ maxMachines: null })
    const ids = [await rule({ type: 'HWID', value: 'bad machine' }), await rule({ type: 'COUNTRY', value: 'AQ' })]
    await becomes('BLACKLISTED', license, { country: 'AQ' })
    expect(await check(license, { country: 'aq' })).toBe('BLACKLISTED')
    for (const country of ['DE', 'XX', 'T1', 'AQQ', '']) expect(await check(license, { country })).toBe('VALID')
    await becomes('BLACKLISTED', license, { machineId: 'bad machine' })
    expect(await check(license, { machineId: 'Bad machine' })).toBe('VALID')
    const body = { license: license.key, macAddress: 'bad machine' }
    expect((await send(validator.port, V2, { body, secret: world.secret })).text).toContain('BLACKLISTED')
    await drop(...ids)
  })

  test('matches a rule on a customer for every license of this customer and no others', async () => {
    const license = await world.license({ maxMachines: null })
    const other = await world.license({ maxMachines: null })
    const id = await rule({ type: 'CUSTOMER', value: license.customerId })
    await becomes('BLACKLISTED', license)
    expect(await check(other)).toBe('VALID')
    await world.database.pool.query('update licenses set customer_id = $2 where id = $1', [
      other.id,
      license.customerId,
    ])
    await becomes('BLACKLISTED', other)
    await drop(id)
  })

  test('takes no slot for a blacklisted or excluded machine', async () => {
    const license = await world.license({ maxMachines: 1 })
    const ids = [
      await rule({ licenseId: license.id, type: 'HWID', value: 'blacklisted' }),
      await rule({ licenseId: license.id, kind: 'EXCLUSION', type: 'HWID', value: 'excluded' }),
    ]
    // This license is created after the rules, so the validator has applied the rules when a check finds it.
    await becomes('VALID', await world.license({ maxMachines: null }))
    expect(await check(license, { machineId: 'blacklisted' })).toBe('BLACKLISTED')
    expect(await check(license, { machineId: 'excluded' })).toBe('VALID')
    const { rows } = await world.database.pool.query('select from machines where license_id = $1', [license.id])
    expect(rows).toHaveLength(0)
    expect(await check(license, { machineId: 'ordinary' })).toBe('VALID')
    expect(await check(license, { machineId: 'another' })).toBe('TOO_MANY_MACHINES')
    expect(await check(license, { machineId: 'excluded' })).toBe('VALID')
    await drop(...ids)
  })

  test('stops matching a rule at its expiry, without a change in Postgres', async () => {
    const license = await world.license({ maxMachines: null })
    const expiresAt = new Date(Date.now() + 1_000)
    await rule({ licenseId: license.id, type: 'HWID', value: 'm', expiresAt })
    await becomes('BLACKLISTED', license, { machineId: 'm' })
    await becomes('VALID', license, { machineId: 'm' })
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt.getTime())
  })

  test('applies readable rules while unreadable rows are skipped and counted', async () => {
    const license = await world.license({ maxMachines: null })
    const ids = [await rule({ value: '300.1.2.3' }), await rule({ value: Buffer.from([0xff]) })]
    const good = await rule({ value: '127.0.0.1' })
    await becomes('BLACKLISTED', license)
    const metrics = await send(validator.adminPort, '/metrics', { method: 'GET' })
    expect(metrics.text).toMatch(/^keyward_feed_skipped_rows_total\{entity="rule"\} 2$/m)
    await drop(...ids, good)
  })
})

// A balancer replaces the headers that these tests send.
describe.skipIf(isBehindBalancer)('the client address', () => {
  test('uses the peer address when the peer is not trusted', async () => {
    const license = await world.license({ maxMachines: null })
    const direct = await startLoaded(world.database.validatorUrl, {
      resolver: { trustedProxies: [], countryHeader: 'x-country' },
    })
    const { port } = direct
    const ids = [await rule({ value: '203.0.113.9' }), await rule({ type: 'COUNTRY', value: 'AQ' })]
    await becomes('BLACKLISTED', license, { ip: '203.0.113.9' })
    await until(async () => (await send(direct.adminPort, '/readyz', { method: 'GET' })).status === 200)
    expect(await check(license, { port, ip: '203.0.113.9', country: 'AQ' })).toBe('VALID')
    const peer = await rule({ value: '127.0.0.0/8' })
    await becomes('BLACKLISTED', license, { port, ip: '9.9.9.9' })
    await drop(...ids, peer)
    await direct.close()
  })

  test('reads the client address only from the header of the edge preset', async () => {
    const license = await world.license({ maxMachines: null })
    const behind = await startLoaded(world.database.validatorUrl, {
      resolver: { trustedProxies: 'all', edge: 'cloudflare' },
    })
    const id = await rule({ value: '203.0.113.9' })
    const from = async (headers: Record<string, string>): Promise<string> =>
      (await send(behind.port, V2, { body: { license: license.key }, headers, secret: world.secret })).text
    await until(async () => (await from({ 'cf-connecting-ip': '203.0.113.9' })).includes('BLACKLISTED'))
    expect(await from({ 'x-forwarded-for': '203.0.113.9' })).toContain('VALID')
    expect(await from({ 'cf-connecting-ip': 'junk', 'x-forwarded-for': '203.0.113.9' })).toContain('"VALID"')
    await drop(id)
    await behind.close()
  })
})
