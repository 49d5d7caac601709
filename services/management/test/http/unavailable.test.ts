/**
 * Tests outages of Postgres and of all validators: responses have the status 503 and `Retry-After`, and no internal details. Readiness
 * follows the outage of Postgres.
 */

import { createTestDatabase, startProxy } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { startHarness } from '../support/harness.ts'
import { createVendor, outcome } from '../support/vendor.ts'

test('returns 503 during a Postgres outage and recovers after it', { timeout: 30_000 }, async () => {
  const database = await createTestDatabase()
  const { hostname, port } = new URL(database.url)
  const proxy = await startProxy(Number(port), hostname)
  const address = new URL(database.url)
  address.host = `127.0.0.1:${proxy.port}`
  const harness = await startHarness({ DATABASE_URL: address.toString() })
  try {
    const vendor = await createVendor(harness)
    proxy.refuse()
    const rejected = await vendor.call('GET', 'products')
    expect(outcome(rejected)).toBe('503 UNAVAILABLE')
    expect(rejected.headers.get('retry-after')).toBe('1')
    expect(rejected.text).not.toMatch(/ECONN|postgres|127\.0\.0\.1/i)
    const ready = async () => (await fetch(`${harness.adminOrigin}/readyz`)).status
    await expect.poll(ready, { timeout: 8_000 }).toBe(503)
    proxy.heal()
    await expect.poll(async () => outcome(await vendor.call('GET', 'products')), { timeout: 8_000 }).toBe('200')
    await expect.poll(ready, { timeout: 8_000 }).toBe(200)
  } finally {
    await harness.close()
    await proxy.close()
    await database.drop()
  }
})

test('returns 503 for evaluations and files for apps while no validator is reachable', async () => {
  const harness = await startHarness()
  const vendor = await createVendor(harness)
  const { id, key: licenseKey } = await vendor.license()
  const requests = [
    vendor.call('POST', 'access-rules/evaluate', { body: { licenseId: id } }),
    harness.call('POST', 'licenses/file', { token: vendor.apiKey, body: { licenseKey, fingerprint: 'm1' } }),
  ]
  for (const response of await Promise.all(requests)) {
    expect(outcome(response)).toBe('503 UNAVAILABLE')
    expect(response.text).toMatch(/No validator [^"]* is reachable/)
    expect(response.headers.get('retry-after')).toBe('1')
  }
  expect((await vendor.call('GET', `licenses/${id}/file`)).status).toBe(200)
  await harness.close()
})
