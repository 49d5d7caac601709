/** Tests the evaluation of a check: the verdict of a validator, the rules that match, and the caller's address. */

import { contains, formatNetwork, noAddress, parseAddress, parseNetwork } from '@keyward/address'
import { evaluation, myIp } from '@keyward/contract'
import { createdToken } from '@keyward/contract/management/credentials'
import { isBehindBalancer, random } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { startHarnessWithValidator } from '../support/harness.ts'
import { insertMachine } from '../support/requests.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Awaited<ReturnType<typeof startHarnessWithValidator>>
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarnessWithValidator({ TRUSTED_PROXIES: '127.0.0.1', COUNTRY_HEADER: 'x-country' })
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

async function evaluate(body: object) {
  return expectBody(await vendor.call('POST', 'access-rules/evaluate', { body }), 200, evaluation)
}

test('returns the deciding rule of the most specific scope, and all matching rules', async () => {
  const license = await vendor.license()
  const check = { licenseKey: license.key, ip: '203.0.113.7', machineId: 'm1', country: 'de' }
  const nothing = { decidedBy: null, matched: [], monitored: [], restricted: null }
  expect(await evaluate(check)).toEqual({ code: 'VALID', ...nothing })
  const wide = await vendor.rule({ value: '203.0.113.0/24' })
  expect(await evaluate(check)).toMatchObject({ code: 'BLACKLISTED', decidedBy: { id: wide.id } })
  const country = await vendor.rule({ type: 'COUNTRY', value: 'DE' })
  const excluded = await vendor.rule({
    kind: 'EXCLUSION',
    value: '203.0.0.0/8',
    scope: 'PRODUCT',
    scopeId: license.productId,
  })
  const result = await evaluate(check)
  expect(result).toMatchObject({ code: 'VALID', decidedBy: { id: excluded.id } })
  expect(result.matched.map((rule) => rule.id).toSorted()).toEqual([wide.id, country.id, excluded.id].toSorted())
  const customer = { type: 'CUSTOMER', value: license.customerId, scope: 'LICENSE', scopeId: license.id }
  const named = await vendor.rule(customer)
  expect(await evaluate(check)).toMatchObject({ code: 'BLACKLISTED', decidedBy: { id: named.id } })
  expect(await evaluate({ ...check, ip: '::ffff:203.0.113.7' })).toMatchObject({ matched: { length: 4 } })
  expect(await evaluate({ licenseId: license.id })).toMatchObject({ code: 'BLACKLISTED', matched: { length: 1 } })
  const { rows } = await harness.database.pool.query('select sum(match_count)::integer as n from access_rule_counters')
  expect(rows).toEqual([{ n: 0 }])
})

test('lists monitored rules separately, and names the restrictions that reject a check', async () => {
  const own = await createVendor(harness)
  const license = await own.license({ policy: { type: 'PERPETUAL' } })
  const rule = (fields: object) => own.rule({ kind: 'RESTRICTION', ...fields })
  const of = async (check: object) => {
    const body = { licenseId: license.id, ...check }
    const result = expectBody(await own.call('POST', 'access-rules/evaluate', { body }), 200, evaluation)
    const ids = (rules: { id: string }[]) => rules.map(({ id }) => id).toSorted()
    return { ...result, matched: ids(result.matched), monitored: ids(result.monitored) }
  }
  const trial = await rule({ mode: 'MONITOR', value: '192.0.2.0/24' })
  expect(await of({ ip: '203.0.113.7' })).toMatchObject({ code: 'VALID', monitored: [], restricted: null })
  expect(await of({ ip: '192.0.2.7' })).toMatchObject({ code: 'VALID', matched: [], monitored: [trial.id] })
  await own.call('PATCH', `access-rules/${trial.id}`, { body: { mode: 'ENFORCE' } })
  const inLicense = { scope: 'LICENSE', scopeId: license.id }
  const machine = await rule({ type: 'HWID', value: 'm1', ...inLicense })
  const organizationRestriction = { scope: 'ORGANIZATION', scopeId: null, types: ['IP'] }
  expect(await of({ ip: '203.0.113.7', machineId: 'm1' })).toMatchObject({
    code: 'BLACKLISTED',
    decidedBy: null,
    matched: [machine.id],
    monitored: [],
    restricted: organizationRestriction,
  })
  expect(await of({ ip: '192.0.2.7' })).toMatchObject({
    code: 'BLACKLISTED',
    restricted: { ...inLicense, types: ['HWID'] },
  })
  const productScope = { scope: 'PRODUCT', scopeId: license.productId }
  await rule({ type: 'COUNTRY', value: 'DE', ...productScope })
  expect(await of({ ip: '192.0.2.7', machineId: 'm1', country: 'FR' })).toMatchObject({
    code: 'BLACKLISTED',
    restricted: { ...productScope, types: ['COUNTRY'] },
  })
  const allowed = { ip: '192.0.2.7', machineId: 'm1', country: 'DE' }
  expect(await of(allowed)).toMatchObject({ code: 'VALID', decidedBy: null, restricted: null })
})

test('keeps concurrent evaluations of several vendors apart', async () => {
  const vendors = [vendor, await createVendor(harness), await createVendor(harness)]
  const worlds = await Promise.all(
    vendors.map(async (each, n) => {
      const license = await each.license()
      const rules = await Promise.all(vendors.slice(0, n).map((_, i) => each.rule({ value: `198.51.100.0/${24 + i}` })))
      return { each, license, expected: rules.map((rule) => rule.id).toSorted() }
    }),
  )
  for (let turn = 0; turn < 20; turn++) {
    await Promise.all(
      worlds.map(async ({ each, license, expected }) => {
        const body = { licenseId: license.id, ip: '198.51.100.7', machineId: 'm1' }
        const result = expectBody(await each.call('POST', 'access-rules/evaluate', { body }), 200, evaluation)
        expect(result.matched.map((rule) => rule.id).toSorted()).toEqual(expected)
      }),
    )
  }
})

test('returns the verdict that a check would get with regard to machine limits', async () => {
  const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 1 } })
  const of = (machineId?: string | null) => evaluate({ licenseId: license.id, machineId })
  for (const absent of [undefined, null, '']) expect(await of(absent)).toMatchObject({ code: 'FINGERPRINT_REQUIRED' })
  expect(await of('m1')).toMatchObject({ code: 'VALID' })
  await insertMachine({ harness, vendor }, license.id, 'm1')
  expect(await of('m1')).toMatchObject({ code: 'VALID' })
  expect(await of('m2')).toMatchObject({ code: 'TOO_MANY_MACHINES' })
  expect(await evaluate({ licenseKey: 'nothing' })).toMatchObject({ code: 'NOT_FOUND', decidedBy: null, matched: [] })
})

test('rejects an unknown license id and an invalid address', async () => {
  const outcomeOf = async (body: object) => outcome(await vendor.call('POST', 'access-rules/evaluate', { body }))
  const other = await (await createVendor(harness)).license()
  expect(await outcomeOf({ licenseId: other.id })).toBe('404 NOT_FOUND')
  expect(await outcomeOf({ licenseKey: 'k', ip: '1.2.3' })).toBe('422 INVALID_REQUEST')
  expect(await outcomeOf({ licenseKey: 'k', ip: '10.0.0.0/8' })).toBe('422 INVALID_REQUEST')
  expect(await outcomeOf({})).toBe('422 INVALID_REQUEST')
  expect(await outcomeOf({ licenseKey: 'k', licenseId: other.id })).toBe('422 INVALID_REQUEST')
})

test('an expired rule does not match', async () => {
  const license = await vendor.license({ policy: { type: 'PERPETUAL' } })
  const rule = await vendor.rule({ value: '198.51.100.9', scope: 'LICENSE', scopeId: license.id })
  const check = { licenseId: license.id, ip: '198.51.100.9' }
  expect(await evaluate(check)).toMatchObject({ code: 'BLACKLISTED' })
  await harness.database.pool.query('update access_rules set expires_at = now() where id = $1', [rule.id])
  expect(await evaluate(check)).toMatchObject({ code: 'VALID', decidedBy: null, matched: [] })
})

test('distinguishes IPv4 and IPv6 ranges with a common prefix', async () => {
  const license = await vendor.license()
  const networks = [
    '10.20.30.0/24',
    '10.20.31.0/24',
    '2001:db8:1::/48',
    '2001:db8:2::/48',
    '2002::/16',
    '2002:0:0:1::/64',
  ]
  for (const value of networks) await vendor.rule({ value, scope: 'LICENSE', scopeId: license.id })
  const matches = async (ip: string): Promise<unknown[]> =>
    (await evaluate({ licenseId: license.id, ip })).matched.map((rule) => rule.value).toSorted()
  expect(await matches('10.20.30.4')).toEqual(['10.20.30.0/24'])
  expect(await matches('10.20.32.4')).toEqual([])
  expect(await matches('2001:db8:2::7')).toEqual(['2001:db8:2::/48'])
  expect(await matches('2002:0:0:1::9')).toEqual(['2002:0:0:1::/64', '2002::/16'])
  expect(await matches('2002::9')).toEqual(['2002::/16'])
  expect(await matches('::9')).toEqual([])
})

test('matches exactly the addresses that the canonical value contains', async () => {
  const { int } = random(11)
  const own = await createVendor(harness)
  const license = await own.license({ policy: { type: 'PERPETUAL' } })
  // The addresses have few different bytes, so that ranges overlap and contain many addresses.
  const four = () => [10, 20 + int(2), int(3) * 100, int(256)].join('.')
  const six = () => ['2001', 'db8', int(2), 0, int(2), 0, int(3), int(4)].map((group) => group.toString(16)).join(':')
  const spellings = Array.from({ length: 80 }, (_, i) => {
    if (i % 4 === 0) return `::FFFF:${four()}/${96 + int(33)}`
    return i % 2 === 0 ? `${six()}/${16 + int(113)}` : `${four()}/${int(33)}`
  })
  const rules = spellings.map((value) => ({ kind: 'BLACKLIST', type: 'IP', value, scope: 'ORGANIZATION' }))
  expect((await own.call('POST', 'access-rules/import', { body: { rules } })).status).toBe(200)
  for (let round = 0; round < 40; round++) {
    const ip = [four(), six(), `::ffff:${four()}`][round % 3] ?? ''
    const response = await own.call('POST', 'access-rules/evaluate', { body: { licenseId: license.id, ip } })
    const matched = expectBody(response, 200, evaluation).matched.map((rule) => rule.value)
    const address = noAddress()
    expect(parseAddress(ip, address)).toBe(true)
    const covering = spellings
      .flatMap((text) => parseNetwork(text) ?? [])
      .filter((network) => contains(network, address))
    expect(matched.toSorted()).toEqual([...new Set(covering.map(formatNetwork))].toSorted())
  }
})

// A balancer replaces the header with the address of its caller.
test.skipIf(isBehindBalancer)('my-ip returns the address and country that a validator would determine', async () => {
  const get = async (headers: Record<string, string>) => {
    const response = await vendor.call('GET', 'access-rules/my-ip', { headers })
    expect(response.headers.get('cache-control')).toBe('no-store')
    return expectBody(response, 200, myIp)
  }
  expect(await get({})).toEqual({ ip: '127.0.0.1', country: null })
  const forwarded = { 'x-forwarded-for': '198.51.100.1, 203.0.113.7', 'x-country': 'fr' }
  expect(await get(forwarded)).toEqual({ ip: '203.0.113.7', country: 'FR' })
  // A token that may add exclusions needs the address for them.
  const body = { name: 'writer', permissions: ['licenses.write'] }
  const { secret } = expectBody(
    await vendor.call('POST', 'tokens', { body }),
    201,
    createdToken.required({ secret: true }),
  )
  expect((await vendor.call('GET', 'access-rules/my-ip', { token: secret })).status).toBe(200)
})
