/** Tests the number of round trips to Postgres of requests that create one row. */

import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Harness, startHarness } from '../support/harness.ts'
import { countRoundTrips, type RoundTrips } from '../support/round-trips.ts'
import { createVendor, perpetual, type Vendor } from '../support/vendor.ts'

let trips: RoundTrips
let harness: Harness
let vendor: Vendor
let ids: { productId: string; customerId: string }

beforeAll(async () => {
  trips = countRoundTrips()
  harness = await startHarness()
  vendor = await createVendor(harness)
  ids = { productId: await vendor.product(), customerId: await vendor.customer() }
})
afterAll(async () => {
  await harness.close()
  trips.stop()
})

test.each([
  { path: 'licenses', body: () => ({ ...ids, policy: perpetual }) },
  { path: 'licenses', body: () => ({ ...ids, policy: perpetual, entitlements: { seats: 3 } }) },
  {
    path: 'access-rules',
    body: (n: number) => ({ kind: 'BLACKLIST', type: 'HWID', value: `m${n}`, scope: 'ORGANIZATION' }),
  },
  { path: 'products', body: (n: number) => ({ name: `Product ${n}` }) },
  { path: 'customers', body: () => ({ email: 'ada@example.com' }) },
])('POST /$path needs at most four round trips', async ({ path, body }) => {
  let fewest = Infinity
  // Background statements of the service add a round trip to some of the requests.
  for (let n = 0; n < 8; n++) {
    const create = async () => expect((await vendor.call('POST', path, { body: body(n) })).status).toBe(201)
    fewest = Math.min(fewest, await trips.during(create))
  }
  // The credential; the checks; the insertion; the audit entry with the commit.
  expect(fewest).toBeLessThanOrEqual(4)
  expect(fewest).toBeGreaterThan(2)
})
