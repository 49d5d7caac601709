/** Tests the limits of quotas, also under concurrent requests, and their counters (docs/api.md#m13). */

import { DEFAULT_QUOTAS, organizationDetails, ownOrganization, problem, type Quota } from '@keyward/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import type { CountedQuota } from '../../src/quotas/quotas.ts'
import { type ApiResponse, type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.close())

async function setQuotas(vendor: Vendor, quotas: Partial<Record<Quota, number | null>>): Promise<void> {
  const response = await harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas } })
  expectBody(response, 200, organizationDetails)
}

async function quotasOf(vendor: Vendor) {
  return expectBody(await vendor.call('GET', 'organization'), 200, ownOrganization).quotas
}

/** Counts the rows of each table without reading the counters. */
async function countRows(vendor: Vendor): Promise<unknown> {
  const { rows } = await harness.database.pool.query(
    `select (select count(*)::integer from licenses where organization_id = $1) as licenses,
      (select count(*)::integer from products where organization_id = $1) as products,
      (select count(*)::integer from customers where organization_id = $1) as customers,
      (select count(*)::integer from credentials where organization_id = $1 and revoked_at is null and kind = 'API_KEY') as "apiKeys",
      (select count(*)::integer from credentials where organization_id = $1 and revoked_at is null and kind <> 'API_KEY') as tokens,
      (select count(*)::integer from members where organization_id = $1) as members,
      (select count(*)::integer from access_rules where organization_id = $1) as "accessRules",
      (select count(*)::integer from access_rule_sets where organization_id = $1) as "ruleSets",
      (select count(*)::integer from signing_keys where organization_id = $1) as "signingKeys",
      (select count(*)::integer from webhook_endpoints where organization_id = $1) as "webhookEndpoints",
      (select count(*)::integer from portal_sessions where organization_id = $1) as "portalSessions",
      (select count(*)::integer from machines where organization_id = $1) as machines`,
    [vendor.id],
  )
  return rows[0]
}

async function used(vendor: Vendor): Promise<unknown> {
  const { machinesPerLicense: _, storedBytes: __, bytesPerDay: ___, ...counted } = await quotasOf(vendor)
  return Object.fromEntries(Object.entries(counted).map(([name, quota]) => [name, quota.used]))
}

let counter = 0
const unique = () => `${++counter}`

/** The request that adds one row, for each quota. */
const ADD: Record<CountedQuota, (vendor: Vendor) => Promise<ApiResponse>> = {
  licenses: async (vendor) => {
    const body = { productId: await vendor.product(), customerId: await vendor.customer() }
    return vendor.call('POST', 'licenses', { body: { ...body, policy: { type: 'PERPETUAL' } } })
  },
  products: (vendor) => vendor.call('POST', 'products', { body: { name: 'p' } }),
  customers: (vendor) => vendor.call('POST', 'customers', { body: { email: 'a@example.com' } }),
  apiKeys: (vendor) => vendor.call('POST', 'api-keys', { body: { name: 'k' } }),
  tokens: (vendor) => vendor.call('POST', 'tokens', { body: { name: 't', permissions: [] } }),
  members: (vendor) => vendor.call('POST', 'members', { body: { email: `${unique()}@example.com`, permissions: [] } }),
  accessRules: (vendor) =>
    vendor.call('POST', 'access-rules', {
      body: { kind: 'BLACKLIST', type: 'HWID', value: unique(), scope: 'ORGANIZATION' },
    }),
  ruleSets: (vendor) =>
    vendor.call('PUT', `access-rules/sets/set-${unique()}`, { body: { rules: [], allowEmpty: true } }),
  signingKeys: (vendor) => vendor.call('POST', 'signing-keys/rotate'),
  webhookEndpoints: (vendor) =>
    vendor.call('POST', 'webhook-endpoints', { body: { url: 'https://hooks.example.com/', types: ['*'] } }),
  portalSessions: async (vendor) =>
    vendor.call('POST', 'portal-sessions', { body: { customerId: await vendor.customer(), actions: [] } }),
}

test.each(Object.entries(ADD))(
  'the quota %s rejects an addition beyond its limit and names the limit and the use',
  async (name, add) => {
    const vendor = await createVendor(harness)
    expect((await add(vendor)).status).toBeLessThan(300)
    const quotas = z.record(z.string(), z.object({ used: z.number().nullable() })).parse(await quotasOf(vendor))
    const before = quotas[name]?.used ?? 0
    await setQuotas(vendor, { [name]: before + 1 })
    expect((await add(vendor)).status).toBeLessThan(300)
    const rejected = await add(vendor)
    expect(outcome(rejected)).toBe('403 QUOTA_EXCEEDED')
    expect(problem.parse(rejected.body).quota).toEqual({ name, limit: before + 1, used: before + 1 })
    expect(await used(vendor)).toEqual(await countRows(vendor))
    await setQuotas(vendor, { [name]: null })
    expect((await add(vendor)).status).toBeLessThan(300)
  },
)

test('concurrent requests and imports never add more rows than the quota allows', async () => {
  const vendor = await createVendor(harness)
  const ids = { productId: await vendor.product(), customerId: await vendor.customer() }
  const license = { ...ids, policy: { type: 'PERPETUAL' } }
  await setQuotas(vendor, { licenses: 30 })
  const singles = Array.from({ length: 30 }, () => vendor.call('POST', 'licenses', { body: license }))
  const imports = Array.from({ length: 10 }, () =>
    vendor.call('POST', 'licenses/import', { body: { licenses: [license, license, license] } }),
  )
  const created = (await Promise.all(singles)).filter(({ status }) => status === 201).length
  const imported = (await Promise.all(imports)).filter(({ status }) => status === 200).length
  expect(created + 3 * imported).toBeLessThanOrEqual(30)
  expect(created + 3 * imported).toBeGreaterThan(27)
  expect((await quotasOf(vendor))['licenses']).toEqual({ used: created + 3 * imported, limit: 30 })
})

test('a deletion, a merge or a revocation lowers the use of a quota', async () => {
  const vendor = await createVendor(harness)
  const [from, into] = [await vendor.customer(), await vendor.customer()]
  const license = await vendor.license({ customerId: from })
  await vendor.rule({ scope: 'LICENSE', scopeId: license.id })
  await vendor.rule({ type: 'CUSTOMER', value: from })
  await vendor.rule({ type: 'CUSTOMER', value: into })
  const key = await vendor.call('POST', 'api-keys', { body: { name: 'k' } })
  const { id } = z.looseObject({ id: z.string() }).parse(key.body)
  expect(await used(vendor)).toEqual(await countRows(vendor))
  await vendor.call('POST', `customers/${from}/merge`, { body: { into } })
  expect(await used(vendor)).toEqual(await countRows(vendor))
  expect((await vendor.call('DELETE', `licenses/${license.id}`)).status).toBe(204)
  expect((await vendor.call('DELETE', `api-keys/${id}`)).status).toBe(204)
  expect(await used(vendor)).toEqual(await countRows(vendor))
  expect(await used(vendor)).toMatchObject({ licenses: 0, customers: 1, accessRules: 1, apiKeys: 1 })
})

test('an expired rule counts toward the quota until it is deleted or replaced', async () => {
  const vendor = await createVendor(harness, 'FREE')
  const { id } = await vendor.rule({ value: '192.0.2.1' })
  await harness.database.pool.query(`update access_rules set expires_at = now() where id = $1`, [id])
  await setQuotas(vendor, { accessRules: 1 })
  const post = (value: string) =>
    vendor.call('POST', 'access-rules', { body: { kind: 'BLACKLIST', type: 'IP', value, scope: 'ORGANIZATION' } })
  expect(outcome(await post('192.0.2.2'))).toBe('403 QUOTA_EXCEEDED')
  expect(outcome(await post('192.0.2.1'))).toBe('201')
  expect((await quotasOf(vendor))['accessRules']).toEqual({ used: 1, limit: 1 })
})

test('policy.maxMachines may not exceed the quota machinesPerLicense', async () => {
  const vendor = await createVendor(harness)
  const license = await vendor.license({ policy: { type: 'PERPETUAL', maxMachines: 100_000 } })
  const patch = (policy: object) => vendor.call('PATCH', `licenses/${license.id}`, { body: { policy } })
  const tooHigh = await harness.call('PATCH', `organizations/${vendor.id}`, {
    body: { quotas: { machinesPerLicense: 100_001 } },
  })
  expect(outcome(tooHigh)).toBe('422 INVALID_REQUEST')
  expect(tooHigh.text).toContain('#/quotas/machinesPerLicense')
  await setQuotas(vendor, { machinesPerLicense: 5 })
  const rejected = await patch({ maxMachines: 6 })
  expect(outcome(rejected)).toBe('403 QUOTA_EXCEEDED')
  expect(problem.parse(rejected.body).quota).toEqual({ name: 'machinesPerLicense', limit: 5, used: 6 })
  // A lower quota changes no existing license.
  expect(outcome(await patch({ maxMachines: 100_000, type: 'PERPETUAL' }))).toBe('200')
  expect(outcome(await patch({ maxMachines: null }))).toBe('200')
  const ids = { productId: license.productId, customerId: license.customerId }
  const row = { ...ids, policy: { type: 'PERPETUAL', maxMachines: 6 } }
  expect(outcome(await vendor.call('POST', 'licenses', { body: row }))).toBe('403 QUOTA_EXCEEDED')
  expect(outcome(await vendor.call('POST', 'licenses/import', { body: { licenses: [row] } }))).toBe(
    '403 QUOTA_EXCEEDED',
  )
})

test('only the operator changes quotas, and other organizations keep theirs', async () => {
  const [vendor, other] = [await createVendor(harness), await createVendor(harness)]
  const body = { quotas: { products: 1 } }
  expect(outcome(await vendor.call('PATCH', `organizations/${vendor.id}`, { body }))).toBe('403 FORBIDDEN')
  await setQuotas(vendor, { products: 1, licenses: 2 })
  await setQuotas(vendor, { licenses: null })
  const read = await harness.call('GET', `organizations/${vendor.id}`)
  const { quotas } = expectBody(read, 200, organizationDetails)
  expect(quotas).toMatchObject({ products: { used: 0, limit: 1 }, licenses: { limit: DEFAULT_QUOTAS.licenses } })
  expect((await quotasOf(other))['products']).toEqual({ used: 0, limit: DEFAULT_QUOTAS.products })
  for (const wrong of [{ products: -1 }, { products: '5' }, { products: 2 ** 31 }, { machine: 1 }, { products: 1.5 }])
    expect(outcome(await harness.call('PATCH', `organizations/${vendor.id}`, { body: { quotas: wrong } }))).toBe(
      '422 INVALID_REQUEST',
    )
})

test('a counter has few rows after many additions', async () => {
  const vendor = await createVendor(harness)
  const insert = `insert into products (id, organization_id, name) values (gen_random_uuid(), $1, 'p')`
  for (let i = 0; i < 150; i++) await harness.database.pool.query(insert, [vendor.id])
  expect((await ADD.products(vendor)).status).toBe(201)
  const { rows } = await harness.database.pool.query<{ rows: number }>(
    `select count(*)::integer as rows from organization_usage where organization_id = $1 and quota = 'products'`,
    [vendor.id],
  )
  expect(rows[0]?.rows).toBeLessThan(5)
  expect(await used(vendor)).toEqual(await countRows(vendor))
})

test('the counter of a truncated table is reset', async () => {
  const vendor = await createVendor(harness)
  await vendor.rule({})
  await harness.database.pool.query('truncate access_rules cascade')
  expect(await used(vendor)).toEqual(await countRows(vendor))
})

test('returns 429 for a request with an idempotency key when the organization has stored 1 GiB of responses', async () => {
  const [full, other] = [await createVendor(harness), await createVendor(harness)]
  await harness.database.pool.query(
    `insert into idempotency_keys (owner, key, request_hash, organization_id, bytes) values ('x', 'y', '', $1, 1024 ^ 3)`,
    [full.id],
  )
  const create = (vendor: Vendor, headers: Record<string, string>) =>
    vendor.call('POST', 'products', { headers, body: { name: 'p' } })
  const rejected = await create(full, { 'idempotency-key': 'a' })
  expect(outcome(rejected)).toBe('429 RATE_LIMITED')
  expect(rejected.headers.get('retry-after')).toBe('3600')
  expect(outcome(await create(full, {}))).toBe('201')
  expect(outcome(await create(other, { 'idempotency-key': 'a' }))).toBe('201')
  const { rows } = await harness.database.pool.query<{ bytes: number }>(
    'select bytes from idempotency_keys where organization_id = $1',
    [other.id],
  )
  expect(rows).toEqual([{ bytes: expect.any(Number) as unknown }])
  expect(rows[0]?.bytes).toBeGreaterThan(512)
})

/** Sums the bytes of an organization without reading the counters. */
async function countStoredBytes({ id }: Vendor): Promise<number> {
  const { rows } = await harness.database.pool.query<{ bytes: number }>(
    `select coalesce(sum(bytes), 0)::integer as bytes from (
       select bytes from audit_log where organization_id = $1
       union all select bytes from events where organization_id = $1
       union all select octet_length(metadata::text) from licenses where organization_id = $1 and metadata <> '{}'
       union all select octet_length(metadata::text) from products where organization_id = $1 and metadata <> '{}'
       union all select octet_length(metadata::text || former::text) from license_templates where organization_id = $1
       union all select 400 + 2 * octet_length(provider || order_id || line) from orders where organization_id = $1
       union all select 200 + 2 * octet_length(provider || reference) from order_references where organization_id = $1
       union all select octet_length(metadata::text) from customers where organization_id = $1 and metadata <> '{}') stored`,
    [id],
  )
  return rows[0]?.bytes ?? 0
}

const LONG = { note: 'x'.repeat(16_000) }

test('counts the bytes of metadata, audit entries, events and orders, and forgets deleted ones', async () => {
  const vendor = await createVendor(harness)
  const product = await vendor.product()
  const put = (metadata: object) => vendor.call('PATCH', `products/${product}`, { body: { metadata } })
  const isExact = async () => expect((await quotasOf(vendor))['storedBytes']?.used).toBe(await countStoredBytes(vendor))
  await isExact()
  await put(LONG)
  await isExact()
  await put({})
  await isExact()
  const terms = { name: 't', policy: { type: 'PERPETUAL' }, metadata: LONG }
  const made = await vendor.call('POST', `products/${product}/templates`, { body: terms })
  const template = expectBody(made, 201, z.looseObject({ id: z.string() }))
  await isExact()
  const other = { metadata: { note: 'y'.repeat(16_000) } }
  expect((await vendor.call('PATCH', `templates/${template.id}`, { body: other })).status).toBe(200)
  await isExact()
  const order = { templateId: template.id, state: 'canceled', customer: { email: 'ada@example.com' } }
  expect((await vendor.call('PUT', 'orders/stripe/o1/1', { body: order })).status).toBeLessThan(300)
  await isExact()
  const reference = `insert into order_references (organization_id, provider, reference, order_id) values ($1, 'stripe', 'in_1', 'o1')`
  await harness.database.pool.query(reference, [vendor.id])
  await isExact()
  const license = { productId: product, customerId: await vendor.customer(), policy: { type: 'PERPETUAL' } }
  const rows = Array.from({ length: 20 }, () => ({ ...license, metadata: LONG }))
  expect((await vendor.call('POST', 'licenses/import', { body: { licenses: rows } })).status).toBe(200)
  await isExact()
  expect((await quotasOf(vendor))['bytesPerDay']?.used).toBeGreaterThan(20 * 16_000)
  await harness.database.pool.query('delete from events where organization_id = $1', [vendor.id])
  await harness.database.pool.query('delete from licenses where organization_id = $1', [vendor.id])
  await harness.database.pool.query('delete from orders where organization_id = $1', [vendor.id])
  await isExact()
  await harness.database.pool.query('truncate events, order_references')
  await isExact()
})

test('beyond bytesPerDay a vendor can still revoke, suspend and delete, and only until twice the quota', async () => {
  const [vendor, other] = [await createVendor(harness), await createVendor(harness)]
  const [product, license, key] = [
    await vendor.product(),
    await vendor.license(),
    z.looseObject({ id: z.string() }).parse((await vendor.call('POST', 'api-keys', { body: { name: 'k' } })).body),
  ]
  const use = (await quotasOf(vendor))['bytesPerDay']?.used ?? 0
  await setQuotas(vendor, { bytesPerDay: use })
  const rejected = await vendor.call('PATCH', `products/${product}`, { body: { name: 'other' } })
  expect(outcome(rejected)).toBe('403 QUOTA_EXCEEDED')
  expect(problem.parse(rejected.body)).toMatchObject({
    quota: { name: 'bytesPerDay', limit: use },
    detail: expect.stringContaining('Retry on the next day') as unknown,
  })
  expect((await vendor.call('POST', `licenses/${license.id}/suspend`)).status).toBe(200)
  expect((await vendor.call('DELETE', `api-keys/${key.id}`)).status).toBe(204)
  expect(outcome(await other.call('PATCH', `products/${await other.product()}`, { body: { name: 'p2' } }))).toBe('200')
  await setQuotas(vendor, { bytesPerDay: 1 })
  expect(outcome(await vendor.call('POST', `licenses/${license.id}/reinstate`))).toBe('403 QUOTA_EXCEEDED')
  // The use of a past day does not count.
  await setQuotas(vendor, { bytesPerDay: null })
  await harness.database.pool.query(`update organization_usage set day = day - 1 where organization_id = $1`, [
    vendor.id,
  ])
  expect((await quotasOf(vendor))['bytesPerDay']?.used).toBe(0)
  expect(outcome(await vendor.call('POST', `licenses/${license.id}/reinstate`))).toBe('200')
})

test('beyond storedBytes a vendor can delete but not add or change', async () => {
  const vendor = await createVendor(harness)
  const license = await vendor.license()
  await setQuotas(vendor, { storedBytes: 1 })
  const create = () => vendor.call('POST', 'products', { body: { name: 'p', metadata: LONG } })
  const rejected = await create()
  expect(outcome(rejected)).toBe('403 QUOTA_EXCEEDED')
  expect(problem.parse(rejected.body).quota?.name).toBe('storedBytes')
  expect((await vendor.call('DELETE', `licenses/${license.id}`)).status).toBe(204)
  await setQuotas(vendor, { storedBytes: null })
  expect(outcome(await create())).toBe('201')
})

test('counters of bytes stay short under many changes', async () => {
  const vendor = await createVendor(harness)
  const product = await vendor.product()
  for (let i = 0; i < 110; i++) await vendor.call('PATCH', `products/${product}`, { body: { name: `p${i}` } })
  const { rows } = await harness.database.pool.query<{ rows: number }>(
    'select count(*)::integer as rows from organization_usage where organization_id = $1',
    [vendor.id],
  )
  expect(rows[0]?.rows).toBeLessThan(250)
  expect((await quotasOf(vendor))['storedBytes']?.used).toBe(await countStoredBytes(vendor))
})
