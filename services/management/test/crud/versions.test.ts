/** Tests the versions that prevent lost updates (docs/api.md#m18). */

import { randomUUID } from 'node:crypto'

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../../src/endpoints.ts'
import { type Caller, type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor
let operator: Caller

beforeAll(async () => {
  harness = await startHarness({
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    WEBHOOK_ALLOWED_PORTS: 'all',
    WEBHOOK_ALLOW_HTTP: 'true',
  })
  vendor = await createVendor(harness)
  operator = harness.call
})
afterAll(() => harness.close())

const created = z.object({ id: z.string() })
const mismatch = z.object({ code: z.literal('VERSION_MISMATCH'), current: z.record(z.string(), z.unknown()) })

const postedId = async (call: Caller, path: string, body: object) =>
  expectBody(await call('POST', path, { body }), 201, created).id

const EXPIRES_AT = '2040-01-01T00:00:00.000Z'
const trial = { policy: { type: 'TRIAL', maxMachines: 3, expiresAt: EXPIRES_AT } } as const

const resources: Record<string, [make: () => Promise<string>, first: object, second: object]> = {
  organizations: [
    () => postedId(operator, 'organizations', { name: 'Acme' }),
    { plan: 'LITE' },
    { quotas: { licenses: 5 } },
  ],
  members: [
    () => postedId(vendor.call, 'members', { email: 'm@example.com', permissions: ['audit.read'] }),
    { permissions: [] },
    { email: 'n@example.com' },
  ],
  products: [() => vendor.product('Studio'), { name: 'Studio 2' }, { metadata: { a: 1 } }],
  templates: [
    async () => {
      const body = { name: 'Yearly', policy: { type: 'PERPETUAL' } }
      return postedId(vendor.call, `products/${await vendor.product('Templated')}/templates`, body)
    },
    { name: 'Monthly' },
    { metadata: { a: 1 } },
  ],
  customers: [() => vendor.customer({}), { name: 'Ada' }, { externalId: 'crm-1' }],
  licenses: [
    async () => (await vendor.license(trial)).id,
    { policy: { maxMachines: 9 } },
    { policy: { maxReleases: 4 } },
  ],
  'access-rules': [async () => (await vendor.rule({})).id, { note: 'a' }, { mode: 'MONITOR' }],
  commerce: [
    () => {
      const body = { name: 'Shop', shop: 'stripe', mode: 'test', secret: 'whsec_0123456789abcdef' }
      return postedId(vendor.call, 'commerce', body)
    },
    { name: 'Shop 2' },
    { states: ['paid'] },
  ],
  'webhook-endpoints': [
    () => postedId(vendor.call, 'webhook-endpoints', { url: 'http://127.0.0.1:9/hook', types: ['*'] }),
    { description: 'a' },
    { enabled: false },
  ],
}

/** Returns a representation without the use of quotas, which the audit entry of each change increases. */
function withoutUse(body: unknown): object {
  const { quotas: _, ...rest } = z.record(z.string(), z.unknown()).parse(body)
  return rest
}

const callerOf = (path: string): Caller => (path === 'organizations' ? operator : vendor.call)
const ifMatch = (etag: string) => ({ headers: { 'if-match': etag } })

function etagOf({ headers }: { headers: Headers }): string {
  const etag = headers.get('etag')
  if (etag === null) throw new Error('the response has no ETag')
  return etag
}

test.each(Object.entries(resources))('%s: the second change of one version changes nothing', async (path, resource) => {
  const [make, first, second] = resource
  const call = callerOf(path)
  const one = `${path}/${await make()}`
  const read = await call('GET', one)
  expect(read.body).toMatchObject({ updatedAt: etagOf(read).slice(1, -1) })

  const changed = await call('PATCH', one, { body: first, ...ifMatch(etagOf(read)) })
  expect(changed.status).toBe(200)
  const refused = await call('PATCH', one, { body: second, ...ifMatch(etagOf(read)) })
  expect(withoutUse(expectBody(refused, 412, mismatch).current)).toEqual(withoutUse(changed.body))
  expect(withoutUse((await call('GET', one)).body)).toEqual(withoutUse(changed.body))

  expect(etagOf(refused)).toBe(etagOf(changed))
  expect(etagOf(changed)).not.toBe(etagOf(read))
  expect((await call('PATCH', one, { body: second, ...ifMatch(etagOf(refused)) })).status).toBe(200)
})

test('one of many concurrent changes of one version succeeds', async () => {
  const one = `customers/${await vendor.customer({})}`
  const etag = etagOf(await vendor.call('GET', one))
  const change = (_: unknown, at: number) =>
    vendor.call('PATCH', one, { body: { name: `Ada ${at}` }, ...(at % 2 === 0 ? ifMatch(etag) : {}) })
  const responses = await Promise.all(Array.from({ length: 20 }, change))
  const conditional = responses.filter((_, at) => at % 2 === 0).map(({ status }) => status)
  expect(conditional.filter((status) => status === 200).length).toBeLessThanOrEqual(1)
  expect(new Set(responses.map(outcome))).toEqual(new Set(['200', '412 VERSION_MISMATCH']))
})

test('each change has a new version, however fast changes follow each other', async () => {
  const id = await vendor.customer({})
  const versions = new Set<string>()
  for (let at = 0; at < 50; at++) {
    await harness.database.pool.query(`update customers set name = $2, updated_at = '2020-01-01' where id = $1`, [
      id,
      `${at}`,
    ])
    versions.add(etagOf(await vendor.call('GET', `customers/${id}`)))
  }
  expect(versions.size).toBe(50)
})

test('actions and deletions compare the version', async () => {
  const one = `licenses/${(await vendor.license(trial)).id}`
  const etag = etagOf(await vendor.call('GET', one))
  const renew = (version: string, expiresAt: string) =>
    vendor.call('POST', `${one}/renew`, { body: { expiresAt }, ...ifMatch(version) })
  const renewed = await renew(etag, '2041-01-01T00:00:00.000Z')
  expect(renewed.status).toBe(200)
  expect(outcome(await renew(etag, '2042-01-01T00:00:00.000Z'))).toBe('412 VERSION_MISMATCH')
  expect(outcome(await vendor.call('DELETE', one, ifMatch(etag)))).toBe('412 VERSION_MISMATCH')
  expect((await vendor.call('DELETE', one, ifMatch(etagOf(renewed)))).status).toBe(204)
})

test('a version mismatch is not stored for an idempotency key', async () => {
  const one = `licenses/${(await vendor.license(trial)).id}`
  const headers = { 'idempotency-key': randomUUID() }
  const suspend = (etag: string) => vendor.call('POST', `${one}/suspend`, { headers: { ...headers, 'if-match': etag } })
  const refused = await suspend('"2020-01-01T00:00:00.000Z"')
  expect(refused.status).toBe(412)
  expect((await suspend(etagOf(refused))).body).toMatchObject({ status: 'suspended' })
})

test('If-Match is *, or a list of weak or strong ETags', async () => {
  const one = `products/${await vendor.product('Studio 9')}`
  const change = (header: string, name: string) => vendor.call('PATCH', one, { body: { name }, ...ifMatch(header) })
  const etag = etagOf(await change('*', 'a'))
  const next = etagOf(await change(`"old", W/${etag}`, 'b'))
  for (const malformed of ['', 'x', etag.slice(1), `${next}, x`])
    expect(outcome(await change(malformed, 'c'))).toBe('422 INVALID_REQUEST')
  expect(outcome(await change('"old", "older"', 'c'))).toBe('412 VERSION_MISMATCH')
  expect((await change(next, 'c')).status).toBe(200)
})

test('an operation without a version rejects If-Match', async () => {
  const create = vendor.call('POST', 'products', { body: { name: 'Studio 10' }, ...ifMatch('*') })
  expect(outcome(await create)).toBe('422 INVALID_REQUEST')
  const id = await postedId(vendor.call, 'members', { email: 'o@example.com', permissions: [] })
  expect(outcome(await vendor.call('POST', `members/${id}/invitation`, ifMatch('*')))).toBe('422 INVALID_REQUEST')
})

test.each(['if-none-match', 'if-unmodified-since'])(
  'a change rejects the condition %s, and a read ignores it',
  async (name) => {
    const headers = { [name]: '*' }
    const body = { rules: [{ kind: 'BLACKLIST', type: 'HWID', value: name, scope: 'ORGANIZATION' }] }
    const set = `access-rules/sets/${name}`
    expect(outcome(await vendor.call('PUT', set, { body, headers }))).toBe('422 INVALID_REQUEST')
    expect((await vendor.call('PUT', set, { body })).status).toBe(200)
    expect((await vendor.call('GET', set, { headers })).status).toBe(200)
  },
)

test('changes, deletions and actions of the resources with a version accept If-Match', () => {
  expect(endpoints.flatMap(({ name, versioned }) => (versioned ? [name] : []))).toEqual([
    'updateOrganization',
    'deleteOrganization',
    'suspendOrganization',
    'reinstateOrganization',
    'updateProduct',
    'deleteProduct',
    'updateTemplate',
    'deleteTemplate',
    'updateCustomer',
    'deleteCustomer',
    'mergeCustomer',
    'updateLicense',
    'deleteLicense',
    'suspendLicense',
    'reinstateLicense',
    'revokeLicense',
    'renewLicense',
    'extendLicense',
    'replaceLicenseKey',
    'updateConnection',
    'deleteConnection',
    'updateAccessRule',
    'deleteAccessRule',
    'updateWebhookEndpoint',
    'deleteWebhookEndpoint',
    'updateMember',
    'deleteMember',
  ])
})

test('another organization cannot compare a version', async () => {
  const other = await createVendor(harness)
  const id = await vendor.customer({})
  const response = await other.call('PATCH', `customers/${id}`, { body: { name: 'x' }, ...ifMatch('"old"') })
  expect(outcome(response)).toBe('404 NOT_FOUND')
})
