/** Tests the conventions of all endpoints: request ids, methods, cursors, idempotency, rate limits, CORS, audit log. */

import { accessRule, importedLicenses } from '@keyward/contract'
import { auditEntry } from '@keyward/contract/management/audit'
import { product as productSchema } from '@keyward/contract/management/products'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../../src/endpoints.ts'
import { encodeCursor } from '../../src/http/pagination.ts'
import { auditedRule } from '../../src/resources/access-rules/rule-rows.ts'
import { type Harness, operatorToken, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness({ CORS_ORIGINS: 'https://app.example.com' })
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const pageOf = <Schema extends z.ZodType>(schema: Schema) =>
  z.object({ data: z.array(schema), nextCursor: z.string().nullable() })

describe('every response', () => {
  test("a response has the caller's request id if it is well-formed, and otherwise a new one", async () => {
    const withId = (id: string) => vendor.call('GET', 'products', { headers: { 'x-request-id': id } })
    expect((await withId('my-id.1')).headers.get('x-request-id')).toBe('my-id.1')
    for (const id of ['x'.repeat(129), 'a b', '<script>'])
      expect((await withId(id)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    const rejected = await vendor.call('GET', 'nowhere', { headers: { 'x-request-id': 'abc' } })
    expect(rejected.body).toMatchObject({
      requestId: 'abc',
      instance: '/api/v1/nowhere',
      code: 'NOT_FOUND',
      status: 404,
    })
  })

  test('a response has the security headers and is not cached', async () => {
    const { headers } = await vendor.call('GET', 'products')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-powered-by')).toBeNull()
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  test('returns a 404 problem for an unknown path', async () => {
    for (const path of [
      '/nothing',
      '/api',
      '/api/v1',
      '/api/v1/',
      '/api/v1/products/',
      '/API/v1/products',
      '/%ff',
      '/api/v1/%',
    ]) {
      const response = await vendor.call('GET', path)
      expect(outcome(response)).toBe('404 NOT_FOUND')
      expect(response.headers.get('content-type')).toContain('application/problem+json')
    }
  })
})

test('returns 405 with Allow for an unknown method, on every path', async () => {
  const byPath = Map.groupBy(endpoints, (endpoint) => endpoint.path)
  for (const [path, list] of byPath) {
    const taken = list.map((endpoint) => endpoint.method)
    const allowed = taken.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    const concrete = `/api/v1${path.replaceAll(/\{\w+\}/g, '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b')}`
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter(
      (one) => !allowed.includes(one),
    )) {
      const response = await vendor.call(method, concrete)
      expect(`${method} ${path} ${response.status}`).toBe(`${method} ${path} 405`)
      expect(response.headers.get('allow')?.split(', ').toSorted()).toEqual(allowed.toSorted())
    }
  }
})

test('returns 405 for a POST to the pages of the documentation', async () => {
  for (const path of ['/openapi.json', '/docs', '/docs/start.js']) {
    const response = await harness.call('POST', path, { token: null })
    expect(outcome(response)).toBe('405 METHOD_NOT_ALLOWED')
    expect(response.headers.get('allow')).toBe('GET, HEAD')
  }
})

test('responds to HEAD as to GET, without a body', async () => {
  const response = await vendor.call('HEAD', 'products')
  expect(response).toMatchObject({ status: 200, text: '' })
})

describe('lists', () => {
  test('a list returns every item once, newest first, while others are added and removed', async () => {
    const { call } = await createVendor(harness)
    const add = async (name: string) =>
      expectBody(await call('POST', 'products', { body: { name } }), 201, productSchema).id
    const ids: string[] = []
    for (let i = 0; i < 7; i++) ids.unshift(await add(`p${i}`))
    const seen: string[] = []
    let cursor = ''
    for (let turn = 0; ; turn++) {
      const response = await call('GET', `products?limit=3${cursor}`)
      const page = expectBody(response, 200, pageOf(productSchema))
      seen.push(...page.data.map((product) => product.id))
      await add(`later ${turn}`)
      if (turn === 0) await call('DELETE', `products/${page.data[2]?.id}`)
      if (page.nextCursor === null) break
      cursor = `&cursor=${page.nextCursor}`
    }
    expect(seen).toEqual(ids)
  })

  test('a list rejects invalid limits, malformed cursors and cursors of other lists', async () => {
    for (let i = 0; i < 2; i++) {
      await vendor.product()
      await vendor.customer()
    }
    const { nextCursor } = expectBody(await vendor.call('GET', 'products?limit=1'), 200, pageOf(z.unknown()))
    expect((await vendor.call('GET', `products?cursor=${nextCursor}`)).status).toBe(200)
    expect(outcome(await vendor.call('GET', `customers?cursor=${nextCursor}`))).toBe('422 INVALID_REQUEST')
    for (const junk of [`${nextCursor}!!`, `${nextCursor}=`, `!${nextCursor}`, nextCursor?.slice(0, -1)])
      expect(outcome(await vendor.call('GET', `products?cursor=${junk}`))).toBe('422 INVALID_REQUEST')
    for (const query of ['limit=0', 'limit=101', 'limit=1.5', 'limit=', 'limit=1&limit=2', 'cursor=', 'cursor=abc'])
      expect(outcome(await vendor.call('GET', `products?${query}`))).toBe('422 INVALID_REQUEST')
  })

  test('a list rejects a forged cursor whose key is no value of the list', async () => {
    for (const sort of ['matchCount', 'lastMatchedAt']) {
      const list = { name: `access-rules ${sort} desc`, organizationId: vendor.id }
      const path = `access-rules?sort=${sort}&cursor=${encodeCursor(list, vendor.id, '1); drop table x;--')}`
      const response = await vendor.call('GET', path)
      expect(outcome(response)).toBe('422 INVALID_REQUEST')
      expect(response.text).not.toContain('drop table')
    }
  })
})

test.each(['\u001b[2J', 'a\u202eb', 'line\nbreak', '\u2066x'])('rejects the name %j', async (wrong) => {
  const response = await vendor.call('POST', 'products', { body: { name: wrong } })
  expect(outcome(response)).toBe('422 INVALID_REQUEST')
  expect(response.text).toContain('#/name must not contain control characters')
})

describe('an idempotency key', () => {
  const post = (body: object, key: string, token = vendor.managementToken) =>
    vendor.call('POST', 'products', { body, token, headers: { 'idempotency-key': key } })

  test('an idempotency key belongs to one credential and body, and a repeated request gets the same error', async () => {
    const first = await post({ name: 'a' }, 'k1')
    expect((await post({ name: 'a' }, 'k1')).body).toEqual(first.body)
    expect(outcome(await post({ name: 'b' }, 'k1'))).toBe('422 IDEMPOTENCY_KEY_REUSED')
    const other = await createVendor(harness)
    const theirs = expectBody(await post({ name: 'a' }, 'k1', other.managementToken), 201, productSchema)
    expect(theirs.id).not.toBe(productSchema.parse(first.body).id)
    const headers = { 'idempotency-key': 'k2' }
    const body = { email: 'a@example.com', externalId: 'once' }
    await vendor.customer({ externalId: 'once' })
    const rejected = await vendor.call('POST', 'customers', { body, headers })
    expect(outcome(rejected)).toBe('409 EXTERNAL_ID_EXISTS')
    await harness.database.pool.query(`update customers set external_id = null where external_id = 'once'`)
    expect((await vendor.call('POST', 'customers', { body, headers })).text).toBe(rejected.text)
    for (const bad of ['', 'x'.repeat(256), 'a b'])
      expect(outcome(await post({ name: 'a' }, bad))).toMatch(/^(?:422|201)/)
  })

  test('an idempotency key replays the response even if a time in the body has passed', async () => {
    const headers = { 'idempotency-key': 'expiring' }
    const expiresAt = new Date(Date.now() + 60_000).toISOString()
    const rule = { kind: 'BLACKLIST', type: 'IP', value: '192.0.2.77', scope: 'ORGANIZATION', expiresAt }
    const send = (body: object) => vendor.call('POST', 'access-rules', { body, headers })
    expect(outcome(await send({ ...rule, expiresAt: 'soon' }))).toBe('422 INVALID_REQUEST')
    const first = expectBody(await send(rule), 201, accessRule)
    // The service runs in this process, so its clock passes the expiry too.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(expiresAt) + 1 })
    try {
      expect(expectBody(await send(rule), 201, accessRule)).toEqual(first)
      expect(outcome(await send({ ...rule, expiresAt: 'soon' }))).toBe('422 IDEMPOTENCY_KEY_REUSED')
      const headersOfAnother = { 'idempotency-key': 'too late' }
      const late = await vendor.call('POST', 'access-rules', { body: rule, headers: headersOfAnother })
      expect(outcome(late)).toBe('422 INVALID_REQUEST')
    } finally {
      vi.useRealTimers()
    }
  })

  test('an idempotency key expires after 7 days', async () => {
    const first = expectBody(await post({ name: 'a' }, 'old'), 201, productSchema)
    const age = (hours: number) =>
      harness.database.pool.query(
        `update idempotency_keys set created_at = now() - make_interval(hours => $1) where key = 'old'`,
        [hours],
      )
    await age(7 * 24 - 1)
    expect(expectBody(await post({ name: 'a' }, 'old'), 201, productSchema).id).toBe(first.id)
    await age(7 * 24 + 1)
    expect(expectBody(await post({ name: 'b' }, 'old'), 201, productSchema).id).not.toBe(first.id)
  })

  test('a stored response contains no secret, and may contain characters that jsonb rejects', async () => {
    const headers = { 'idempotency-key': 'secret' }
    const created = await vendor.call('POST', 'tokens', { body: { name: 't', permissions: [] }, headers })
    const { secret } = expectBody(created, 201, z.object({ secret: z.string() }))
    const { rows } = await harness.database.pool.query('select body::text from idempotency_keys')
    expect(JSON.stringify(rows)).not.toContain(secret)
    const rule = { kind: 'BLACKLIST', type: 'HWID', value: 'a\u0000\\u0000b', scope: 'ORGANIZATION' }
    const send = () => vendor.call('POST', 'access-rules', { body: rule, headers: { 'idempotency-key': 'nul' } })
    const first = expectBody(await send(), 201, accessRule)
    expect(first.value).toBe(rule.value)
    expect(expectBody(await send(), 201, accessRule)).toEqual(first)
  })
})

describe('the audit log', () => {
  test('the audit log has an entry for each change, with its actor and without secrets', async () => {
    const own = await createVendor(harness)
    const id = await own.product('Audited')
    await own.call('POST', 'tokens', { body: { name: 't', permissions: ['audit.read'] } })
    const { data } = expectBody(await own.call('GET', 'audit-log'), 200, pageOf(auditEntry))
    expect(data.map((entry) => entry.action)).toEqual([
      'management_token.created',
      'product.created',
      'api_key.created',
      'management_token.created',
      'organization.created',
    ])
    expect(data[1]).toMatchObject({ resourceType: 'product', resourceId: id, changes: { name: 'Audited' } })
    expect(data[1]?.actor).toMatchObject({ type: 'MANAGEMENT_TOKEN', name: 'first management token' })
    expect(data[4]?.actor).toEqual({ type: 'OPERATOR' })
    const { rows } = await harness.database.pool.query('select * from audit_log')
    expect(JSON.stringify(rows)).not.toMatch(/kw[kmp]_[0-9A-Za-z]{36}/)
  })

  test('the audit log describes deleted and revoked resources, and access rules that were deleted by cascade', async () => {
    const own = await createVendor(harness)
    const license = await own.license({ metadata: { seats: 'three' } })
    const { id: licenseId, productId, customerId } = license
    const rules = [
      await own.rule({ scope: 'LICENSE', scopeId: licenseId }),
      await own.rule({ scope: 'PRODUCT', scopeId: productId }),
      await own.rule({ type: 'CUSTOMER', value: customerId }),
    ]
    const made = async (path: string, body: object) =>
      expectBody(
        await own.call('POST', path, { body }),
        201,
        z.object({ id: z.string(), prefix: z.string().optional() }),
      )
    const member = await made('members', { email: 'eve@example.com', permissions: [] })
    const token = await made(`members/${member.id}/access-tokens`, { name: 'a', permissions: [] })
    const apiKey = await made('api-keys', { name: 'b' })
    for (const path of [
      `licenses/${licenseId}`,
      `products/${productId}`,
      `customers/${customerId}`,
      `members/${member.id}/access-tokens/${token.id}`,
      `api-keys/${apiKey.id}`,
      `members/${member.id}`,
    ])
      expect((await own.call('DELETE', path)).status).toBe(204)
    const { data } = expectBody(await own.call('GET', 'audit-log?limit=6'), 200, pageOf(auditEntry))
    const customer = { email: 'ada@example.com', name: null, externalId: null, metadata: {} }
    const deleted = (at: number) => {
      const { id, ...values } = auditedRule(rules[at]!)
      return { rules: { deleted: 1, ids: [id], first: [{ id, ...values }] } }
    }
    expect(data.map(({ action, changes }) => [action, changes])).toEqual([
      [
        'member.deleted',
        {
          email: 'eve@example.com',
          revokedTokens: [],
          keptApiKeys: [],
          keptWebhookEndpoints: [],
          endedSessions: [],
          deletedInvitations: [],
        },
      ],
      ['api_key.revoked', { name: 'b', prefix: apiKey.prefix }],
      ['access_token.revoked', { name: 'a', prefix: token.prefix, memberId: member.id }],
      ['customer.deleted', { ...customer, ...deleted(2) }],
      ['product.deleted', expect.objectContaining({ id: productId, name: 'Studio', ...deleted(1) })],
      ['license.deleted', { ...license, ...deleted(0) }],
    ])
  })

  test('the audit entry of an import contains the ids and the values of the added rows', async () => {
    const own = await createVendor(harness)
    const license = { productId: await own.product(), customerId: await own.customer(), policy: { type: 'PERPETUAL' } }
    const body = { licenses: [license, license] }
    const imported = expectBody(await own.call('POST', 'licenses/import', { body }), 200, importedLicenses)
    const { data } = expectBody(await own.call('GET', 'audit-log?limit=1'), 200, pageOf(auditEntry))
    expect(data[0]).toMatchObject({
      action: 'license.imported',
      changes: {
        created: 2,
        ids: imported.licenses.map(({ id }) => id),
        licenses: {
          count: 2,
          first: imported.licenses.map((one) => Object.assign(one, { customerId: license.customerId })),
        },
      },
    })
  })

  test('the audit log contains the values of rules that are imported, replaced and deleted, bounded in size', async () => {
    const own = await createVendor(harness)
    const rule = (value: string, fields: object = {}) =>
      Object.assign({ kind: 'BLACKLIST', type: 'HWID', value, scope: 'ORGANIZATION' }, fields)
    const last = async () => expectBody(await own.call('GET', 'audit-log?limit=1'), 200, pageOf(auditEntry)).data[0]
    await own.call('POST', 'access-rules/import', { body: { rules: [rule('imported')] } })
    expect(await last()).toMatchObject({
      changes: { rules: { count: 1, first: [{ value: 'imported', mode: 'ENFORCE' }] } },
    })
    const put = (rules: object[]) => own.call('PUT', 'access-rules/sets/s', { body: { rules } })
    await put([rule('changed', { note: 'old' }), rule('removed')])
    await put([rule('changed', { note: 'new' }), rule('created')])
    expect(await last()).toMatchObject({
      changes: {
        created: { count: 1, first: [{ value: 'created' }] },
        updated: { count: 1, first: [{ value: 'changed', note: 'new' }] },
      },
      before: {
        updated: { count: 1, first: [{ value: 'changed', note: 'old' }] },
        removed: { count: 1, first: [{ value: 'removed' }] },
      },
    })
    await own.call('DELETE', 'access-rules/sets/s')
    expect(await last()).toMatchObject({
      changes: { removed: { count: 2, first: [{ value: 'changed' }, { value: 'created' }] } },
    })
    const { id } = await own.rule({ value: '192.0.2.1', note: 'why' })
    await own.call('DELETE', `access-rules/${id}`)
    expect(await last()).toMatchObject({ changes: { value: '192.0.2.1', note: 'why', mode: 'ENFORCE', matchCount: 0 } })
    const other = await own.rule({ value: '192.0.2.2', note: 'too' })
    await own.call('POST', 'access-rules/delete', { body: { ids: [other.id] } })
    expect(await last()).toMatchObject({
      changes: { rules: { count: 1, first: [{ value: '192.0.2.2', note: 'too' }] } },
    })
    await put(Array.from({ length: 3_000 }, (_, i) => rule(`${i} ${'x'.repeat(400)}`)))
    const entry = await last()
    expect(JSON.stringify(entry).length).toBeLessThan(80_000)
    expect(entry?.changes?.['created']).toMatchObject({ count: 3_000 })
  })

  test('the audit log has no entry for a request that failed', async () => {
    const own = await createVendor(harness)
    await own.rule({ value: '192.0.2.1' })
    const count = async () =>
      (await harness.database.pool.query('select from audit_log where organization_id = $1', [own.id])).rowCount
    const before = await count()
    const body = { kind: 'BLACKLIST', type: 'IP', value: '192.0.2.1', scope: 'ORGANIZATION' }
    expect(outcome(await own.call('POST', 'access-rules', { body }))).toBe('409 RULE_EXISTS')
    expect(await count()).toBe(before)
  })
})

describe('CORS', () => {
  test('CORS allows only the configured origins', async () => {
    const get = (origin: string) => vendor.call('GET', 'products', { headers: { origin } })
    expect((await get('https://app.example.com')).headers.get('access-control-allow-origin')).toBe(
      'https://app.example.com',
    )
    expect((await get('https://evil.example.com')).headers.get('access-control-allow-origin')).toBeNull()
    const preflight = (origin: string) =>
      harness.call('OPTIONS', 'products', { token: null, headers: { origin, 'access-control-request-method': 'POST' } })
    expect((await preflight('https://app.example.com')).status).toBe(204)
    expect((await preflight('https://evil.example.com')).status).toBe(405)
  })

  test('CORS is off without configured origins', async () => {
    const plain = await startHarness()
    const headers = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }
    const response = await plain.call('OPTIONS', 'products', { headers })
    await plain.close()
    expect(response.status).toBe(405)
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  })
})

test('limits the requests of each credential and returns Retry-After', async () => {
  const limited = await startHarness({ MANAGEMENT_RATE_LIMIT: '20' })
  try {
    const [own, other] = [await createVendor(limited), await createVendor(limited)]
    const responses = await Promise.all(Array.from({ length: 30 }, () => own.call('GET', 'organization')))
    const rejected = responses.filter((response) => outcome(response) === '429 RATE_LIMITED')
    expect(rejected.length).toBe(10)
    expect(Number(rejected[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(rejected[0]?.headers.get('ratelimit-remaining')).toBe('0')
    const response = await other.call('GET', 'organization')
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit')).toMatch(/^"credential";r=19;t=\d+$/)
    expect(response.headers.get('ratelimit-policy')).toBe('"credential";q=20;w=10')
  } finally {
    await limited.close()
  }
})

test('reports readiness and counts requests by route on the admin port', async () => {
  await harness.call('GET', `organizations/${vendor.id}`, { token: operatorToken })
  expect((await fetch(`${harness.adminOrigin}/readyz`)).status).toBe(200)
  const metrics = await (await fetch(`${harness.adminOrigin}/metrics`)).text()
  expect(metrics).toContain('route="/api/v1/organizations/:id",status="200"')
})
