/** Tests rate limits: their scopes, the cost of rejected requests, and the callers that they do not affect. */

import { createdToken } from '@keyward/contract'
import { createSecret } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { expect, test } from 'vitest'

import { createSharedCounts } from '../../src/admission/shared-counts.ts'
import { type Harness, startHarness, startHarnessWithValidator } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

async function withHarness(
  env: Record<string, string>,
  run: (harness: Harness) => Promise<void>,
  start = startHarness,
): Promise<void> {
  const harness = await start({ TRUSTED_PROXIES: 'all', CLIENT_IP_HEADER: 'x-client-ip', ...env })
  try {
    await run(harness)
  } finally {
    await harness.close()
  }
}

const from = (ip: string) => ({ 'x-client-ip': ip })
const times = <Result>(count: number, run: (at: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, at) => run(at)))
const count = (responses: readonly { status: number }[], status: number) =>
  responses.filter((response) => response.status === status).length

async function fileRequest(vendor: Vendor): Promise<(ip: string) => ReturnType<Vendor['call']>> {
  const { key: licenseKey } = await vendor.license({ policy: { type: 'PERPETUAL' } })
  const body = { licenseKey, fingerprint: 'm' }
  return (ip) => vendor.call('POST', 'licenses/file', { token: vendor.apiKey, body, headers: from(ip) })
}

test('a flood with an API key from one address leaves the key usable from other addresses', () => {
  const run = async (harness: Harness): Promise<void> => {
    const vendor = await createVendor(harness)
    const file = await fileRequest(vendor)
    expect((await file('198.51.100.1')).status).toBe(200)
    const flood = await times(400, () =>
      vendor.call('GET', 'products', { token: vendor.apiKey, headers: from('203.0.113.9') }),
    )
    expect(count(flood, 429)).toBeGreaterThanOrEqual(200)
    expect(count(flood, 403) + count(flood, 429)).toBe(400)
    for (const ip of ['198.51.100.1', '198.51.100.2', '2001:db8::1']) expect((await file(ip)).status).toBe(200)
    // The flood does not count toward the vendor's limit either.
    expect((await vendor.call('GET', 'products')).status).toBe(200)
    const { rows } = await harness.database.pool.query<{ key: string }>('select key from rate_limits')
    expect(JSON.stringify(rows)).not.toMatch(/203\.0\.113|3405803785/)
  }
  // A license file requires the verdict of a validator.
  return withHarness({ MANAGEMENT_RATE_LIMIT: '100' }, run, startHarnessWithValidator)
})

test('counts the hosts of an IPv6 network together', () =>
  withHarness({}, async (harness) => {
    const vendor = await createVendor(harness)
    const flood = await times(220, (i) =>
      vendor.call('GET', 'products', { token: vendor.apiKey, headers: from(`2001:db8:0:1::${i.toString(16)}`) }),
    )
    expect(count(flood, 429)).toBeGreaterThan(0)
  }))

test('limits the requests of all tokens of an organization together, without an effect on other organizations', () =>
  withHarness({ MANAGEMENT_RATE_LIMIT: '60', MANAGEMENT_ORGANIZATION_RATE_LIMIT: '100' }, async (harness) => {
    const [vendor, other] = [await createVendor(harness), await createVendor(harness)]
    const tokens = await times(4, async (i) => {
      const body = { name: `t${i}`, permissions: ['licenses.read'] }
      return expectBody(await vendor.call('POST', 'tokens', { body }), 201, createdToken).secret
    })
    const flood = (
      await times(4, (i) => times(50, () => vendor.call('GET', 'licenses', { token: tokens[i] ?? '' })))
    ).flat()
    expect(count(flood, 429)).toBeGreaterThanOrEqual(100)
    expect(flood.find(({ status }) => status === 429)?.text).toContain('requests for each organization')
    expect((await other.call('GET', 'licenses')).status).toBe(200)
  }))

test.each([
  { limited: 'credential', env: { MANAGEMENT_RATE_LIMIT: '60' } },
  { limited: 'organization', env: { MANAGEMENT_RATE_LIMIT: '1000', MANAGEMENT_ORGANIZATION_RATE_LIMIT: '60' } },
])('counts each 32 KiB of a response as a further request of the $limited', ({ limited, env }) =>
  withHarness(env, async (harness) => {
    const afterLists = async (text: string): Promise<string> => {
      const vendor = await createVendor(harness)
      for (let i = 0; i < 10; i++)
        await vendor.call('POST', 'products', { body: { name: `p${i}`, metadata: { text } } })
      for (let i = 0; i < 15; i++) await vendor.call('GET', 'products')
      return (await vendor.call('GET', 'products')).text
    }
    expect(await afterLists('')).toContain('"data"')
    // These lists have 150 KB and count as five requests each. The requests are repeated, because they may fall into two windows.
    await expect.poll(() => afterLists('x'.repeat(15_000))).toContain(`requests for each ${limited}`)
  }),
)

test('a request over the limit is rejected without a statement', () =>
  withHarness({ MANAGEMENT_RATE_LIMIT: '20' }, async (harness) => {
    const vendor = await createVendor(harness)
    await times(20, () => vendor.call('GET', 'organization'))
    const lock = await harness.database.pool.connect()
    try {
      // Every statement on these tables now waits until the test ends.
      await lock.query('begin; lock table credentials, rate_limits in access exclusive mode')
      const flood = await times(200, () => vendor.call('GET', 'organization'))
      expect(count(flood, 429)).toBe(200)
      await lock.query('rollback')
    } finally {
      lock.release()
    }
  }))

test('requests succeed while the counts in Postgres are locked', () =>
  withHarness({}, async (harness) => {
    const vendor = await createVendor(harness)
    const lock = await harness.database.pool.connect()
    try {
      await lock.query('begin; lock table rate_limits in access exclusive mode')
      const responses = await times(50, () => vendor.call('GET', 'products'))
      expect(count(responses, 200)).toBe(50)
      await lock.query('rollback')
    } finally {
      lock.release()
    }
  }))

test('limits unknown credentials of one address without an effect on other callers', () =>
  withHarness({}, async (harness) => {
    const vendor = await createVendor(harness)
    expect((await vendor.call('GET', 'products', { headers: from('203.0.113.9') })).status).toBe(200)
    const wrong = `${vendor.managementToken.slice(0, -1)}${vendor.managementToken.endsWith('0') ? '1' : '0'}`
    const guess = (token: string, ip: string) => harness.call('GET', 'products', { token, headers: from(ip) })
    let other: Vendor | undefined
    // The guesses are repeated, because they may fall into two windows.
    await expect
      .poll(async () => {
        const malformed = await times(1_050, () => guess(wrong, '203.0.113.9'))
        expect(count(malformed, 401)).toBe(1_050)
        other = await createVendor(harness)
        // The first request of this vendor comes from the address of the guesses.
        return outcome(await guess(other.managementToken, '203.0.113.9'))
      })
      .toBe('429 RATE_LIMITED')
    if (other === undefined) throw new Error('no vendor was created')
    expect((await guess(other.managementToken, '198.51.100.7')).status).toBe(200)
    // The limit affects neither the operator nor credentials that were used before the guesses.
    expect((await guess(vendor.managementToken, '203.0.113.9')).status).toBe(200)
    expect((await harness.call('GET', 'organizations', { headers: from('203.0.113.9') })).status).toBe(200)
  }))

test('counts unknown session cookies of one address as failures', () =>
  withHarness({}, async (harness) => {
    const cookie = `keyward_session=${createSecret('SESSION').secret}`
    const guess = () => harness.call('GET', 'me', { token: null, headers: { ...from('203.0.113.9'), cookie } })
    await expect.poll(async () => count(await times(1_050, guess), 429)).toBeGreaterThan(0)
  }))

test('management processes share their counts of requests', () =>
  withHarness({}, async (harness) => {
    const db = createDatabase(harness.database.pool)
    const fail = (error: unknown) => {
      throw error
    }
    const [one, two] = [createSharedCounts(db, fail), createSharedCounts(db, fail)]
    const stored = async () => {
      const { rows } = await harness.database.pool.query<{ points: number }>(
        `select points from rate_limits where key = 'a'`,
      )
      return rows[0]?.points
    }
    for (let i = 0; i < 20; i++) one.count('a', 30)
    await expect.poll(stored).toBe(20)
    expect(two.count('a', 30).used).toBe(1)
    await expect.poll(stored).toBe(21)
    await expect.poll(() => two.count('a', 22).used).toBe(23)
    expect(two.count('a', 22).used).toBe(23)
    await Promise.all([one.close(), two.close()])
  }))
