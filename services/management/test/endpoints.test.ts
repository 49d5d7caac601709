/**
 * Sends every kind of malformed, unauthorized, repeated and concurrent request to every endpoint. The list of endpoints comes from their
 * definitions, so it includes new ones. Every response is validated against the OpenAPI document.
 */

import { ALL_PERMISSIONS, createdToken, type Permission, problem } from '@keyward/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../src/endpoints.ts'
import type { Endpoint } from '../src/http/endpoint.ts'
import { documented } from '../src/http/openapi.ts'
import { encodeCursor } from '../src/http/pagination.ts'
import { createResponseValidator, documentSchema, type ResponseValidator } from './support/conformance.ts'
import {
  type ApiResponse,
  type CallOptions,
  type Harness,
  operatorToken,
  startHarnessWithValidator,
} from './support/harness.ts'
import { type Request, unmatched, validRequest } from './support/requests.ts'
import { createVendor, expectBody, outcome, type Vendor } from './support/vendor.ts'

let harness: Harness
let vendor: Vendor
let stranger: Vendor
let validator: ResponseValidator

beforeAll(async () => {
  harness = await startHarnessWithValidator()
  vendor = await createVendor(harness)
  stranger = await createVendor(harness, 'STANDARD', 'Stranger')
  const document = await harness.call('GET', '/openapi.json', { token: null })
  validator = createResponseValidator(documentSchema.parse(document.body))
})
afterAll(() => harness.close())

test('every endpoint has a valid request', () => {
  expect(unmatched()).toEqual([])
})

/** Returns the secret of a credential that the endpoint accepts. */
function credential(endpoint: Endpoint, owner: Vendor = vendor): string {
  if (endpoint.access.kind === 'operator') return operatorToken
  return endpoint.access.kind === 'apiKey' ? owner.apiKey : owner.managementToken
}

async function send(endpoint: Endpoint, request: Request, options: CallOptions = {}): Promise<ApiResponse> {
  const method = endpoint.definition.method.toUpperCase()
  const body = options.raw === undefined && request.body !== undefined ? { body: request.body } : {}
  const response = await harness.call(method, request.path, { token: credential(endpoint), ...body, ...options })
  expect(validator.violation(endpoint, response)).toBeNull()
  expect(response.headers.get('x-request-id')).toBeTruthy()
  return response
}

const make = (endpoint: Endpoint) => validRequest(endpoint.definition.operationId, { harness, vendor })
const takesBody = ({ definition }: Endpoint) => definition.body !== undefined || definition.rows !== undefined
const canHaveBody = ({ definition }: Endpoint) => definition.method === 'post' || definition.method === 'patch'
const isList = ({ definition }: Endpoint) => definition.query?.shape['cursor'] !== undefined
const isRepeatable = ({ definition }: Endpoint) => definition.method === 'post' && definition.readOnly !== true
const hasParams = (endpoint: Endpoint) => endpoint.definition.params !== undefined

/** Returns the endpoints that require a permission, with that permission. */
function permitted(): [string, Endpoint, Permission][] {
  return endpoints.flatMap((one): [string, Endpoint, Permission][] => {
    const { access, definition } = one
    return access.kind === 'vendor' && access.permission !== 'any'
      ? [[definition.operationId, one, access.permission]]
      : []
  })
}

async function tokenWith(permissions: readonly Permission[]): Promise<string> {
  const response = await vendor.call('POST', 'tokens', { body: { name: 'lacking', permissions } })
  return expectBody(response, 201, createdToken.required({ secret: true })).secret
}

const named = (list: readonly Endpoint[]) => list.map((one): [string, Endpoint] => [one.definition.operationId, one])

describe('a valid request', () => {
  test.each(named(endpoints))('%s: returns the documented response', async (_, endpoint) => {
    expect((await send(endpoint, await make(endpoint))).status).toBe(endpoint.definition.status)
  })
})

describe('credentials', () => {
  test.each(named(endpoints))('%s: returns 401 without a credential or with a wrong one', async (_, endpoint) => {
    const request = await make(endpoint)
    for (const token of [null, 'kwm_0000', `kwm_${'0'.repeat(36)}`, `${credential(endpoint)}x`, '%']) {
      const response = await send(endpoint, request, { token })
      expect(outcome(response)).toBe('401 UNAUTHENTICATED')
      expect(response.headers.get('www-authenticate')).toContain('Bearer')
    }
    const basic = await send(endpoint, request, { token: null, headers: { authorization: 'Basic YTpi' } })
    expect(outcome(basic)).toBe('401 UNAUTHENTICATED')
  })

  test.each(named(endpoints))('%s: returns 403 for the wrong kind', async (_, endpoint) => {
    const request = await make(endpoint)
    const all = [operatorToken, vendor.managementToken, vendor.apiKey]
    for (const token of all.filter((one) => one !== credential(endpoint)))
      expect(outcome(await send(endpoint, request, { token }))).toBe('403 FORBIDDEN')
  })

  test.each(permitted())('%s: names the missing permission', async (_, endpoint, needed) => {
    const permissions = ALL_PERMISSIONS.filter((permission) => permission !== needed)
    const response = await send(endpoint, await make(endpoint), { token: await tokenWith(permissions) })
    expect(outcome(response)).toBe('403 FORBIDDEN')
    expect(response.text).toContain(needed)
  })

  test('readOwnOrganization requires no permission', async () => {
    const response = await harness.call('GET', 'organization', { token: await tokenWith([]) })
    expect(response).toMatchObject({ status: 200, body: { id: vendor.id } })
  })
})

describe('another organization', () => {
  const walled = endpoints.filter((endpoint) => endpoint.access.kind !== 'operator')

  test.each(named(walled.filter(hasParams)))('%s: returns 404 for its ids', async (_, endpoint) => {
    const response = await send(endpoint, await make(endpoint), { token: credential(endpoint, stranger) })
    expect(outcome(response)).toBe('404 NOT_FOUND')
    expect(response.text).not.toContain(vendor.id)
  })

  test.each(named(walled.filter((one) => !hasParams(one))))('%s: never returns its rows', async (_, endpoint) => {
    const response = await send(endpoint, await make(endpoint), { token: credential(endpoint, stranger) })
    const { rows } = await harness.database.pool.query<{ id: string }>(
      `select id from products where organization_id = $1 union all select id from customers where organization_id = $1
       union all select id from licenses where organization_id = $1 union all select id from access_rules where organization_id = $1
       union all select id from credentials where organization_id = $1 union all select id from members where organization_id = $1
       union all select id from alerts where organization_id = $1 union all select id from activity where organization_id = $1
       union all select id from audit_log where organization_id = $1 union all select id from signing_keys where organization_id = $1`,
      [vendor.id],
    )
    expect(rows.length).toBeGreaterThan(10)
    expect(rows.filter(({ id }) => response.text.includes(id))).toEqual([])
  })

  test.each(named(walled.filter(isList)))('%s: rejects its cursors', async (_, endpoint) => {
    const { path } = await make(endpoint)
    const list = { name: 'products', organizationId: vendor.id }
    const cursor = encodeCursor(list, '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b')
    const expected = endpoint.definition.path === '/products' ? '200' : '422 INVALID_REQUEST'
    expect(outcome(await send(endpoint, { path: `${path}?cursor=${cursor}` }))).toBe(expected)
    const foreign = await send(endpoint, { path: `${path}?cursor=${cursor}` }, { token: stranger.managementToken })
    expect(outcome(foreign)).toBe(hasParams(endpoint) ? '404 NOT_FOUND' : '422 INVALID_REQUEST')
  })
})

describe('malformed requests', () => {
  test.each(named(endpoints.filter(hasParams)))('%s: returns 404 for a malformed id', async (_, endpoint) => {
    const { path, body } = await make(endpoint)
    const wrong = (id: string) => ({ path: path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, id), ...(body && { body }) })
    for (const id of ['019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b', 'x', '%20', '%00', '1;select', 'a'.repeat(2_000)])
      expect(outcome(await send(endpoint, wrong(id)))).toBe('404 NOT_FOUND')
  })

  test.each(named(endpoints.filter(takesBody)))('%s: rejects a body that is not a JSON object', async (_, endpoint) => {
    const request = await make(endpoint)
    const raw = ['{', '{"a":}', 'null null', '\u0000', new Uint8Array([0x22, 0xff, 0xfe, 0x22]), '[1,]', 'NaN']
    for (const body of raw) expect(outcome(await send(endpoint, request, { raw: body }))).toBe('400 MALFORMED_JSON')
    for (const body of ['null', '[]', '"text"', '7', 'true'])
      expect(outcome(await send(endpoint, request, { raw: body }))).toBe('422 INVALID_REQUEST')
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1']) {
      const headers = { 'content-type': type }
      expect(outcome(await send(endpoint, request, { raw: '{}', headers }))).toBe('415 UNSUPPORTED_MEDIA_TYPE')
    }
  })

  test.each(named(endpoints))('%s: rejects an unknown parameter', async (_, endpoint) => {
    const request = await make(endpoint)
    const response = await send(endpoint, { ...request, path: `${request.path}?surprise=1` })
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(response.body).errors?.[0]?.pointer).toBe('?surprise')
  })

  test.each(named(endpoints.filter(canHaveBody)))('%s: rejects an unknown field', async (_, endpoint) => {
    const { path, body } = await make(endpoint)
    const response = await send(endpoint, { path, body: { ...body, 'sur/prise': 1 } })
    expect(outcome(response)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(response.body).errors?.map((error) => error.pointer)).toContain('#/sur~1prise')
  })

  test.each(named(endpoints.filter(takesBody)))('%s: returns no 5xx for values of any type', async (_, endpoint) => {
    const { definition } = endpoint
    const { path, body = {} } = await make(endpoint)
    const errors = definition.errors?.map(documented).map(({ code, status }) => `${status} ${code}`) ?? []
    const allowed = [String(definition.status), '422 INVALID_REQUEST', ...errors]
    const values = [null, 0, -1.5, true, '', 'x', '\u0000', '\ud800', 'x'.repeat(15_000), [[]], { a: { b: 1 } }]
    for (const field of Object.keys(body))
      for (const value of values)
        expect(allowed).toContain(outcome(await send(endpoint, { path, body: { ...body, [field]: value } })))
    const deep = `{"metadata":${'['.repeat(8_000)}${']'.repeat(8_000)}}`
    expect(outcome(await send(endpoint, { path }, { raw: deep }))).toBe('422 INVALID_REQUEST')
  })

  test.each(named(endpoints.filter(takesBody)))('%s: rejects a body over its limit', async (_, endpoint) => {
    const { path } = await make(endpoint)
    const raw = `{"name":"${'x'.repeat(endpoint.definition.maxBodyBytes ?? 64 * 1024)}"}`
    expect(outcome(await send(endpoint, { path }, { raw }))).toBe('413 PAYLOAD_TOO_LARGE')
  })
})

describe('repeated and concurrent requests', () => {
  test.each(named(endpoints.filter(isRepeatable)))(
    '%s: replays the response to an idempotency key',
    async (id, endpoint) => {
      const request = await make(endpoint)
      const headers = { 'idempotency-key': `repeat-${id}` }
      const first = await send(endpoint, request, { headers })
      expect(first.status).toBe(endpoint.definition.status)
      const repeated = await send(endpoint, request, { headers })
      expect(repeated.headers.get('idempotency-replayed')).toBe('true')
      expect(repeated.status).toBe(first.status)
      expect(repeated.body).toEqual(withoutSecrets(endpoint, first.body))
      expect(repeated.headers.get('location')).toBe(first.headers.get('location'))
    },
  )

  test.each(named(endpoints.filter(isRepeatable)))(
    '%s: runs once for concurrent requests with one key',
    async (id, endpoint) => {
      const request = await make(endpoint)
      const headers = { 'idempotency-key': `at-once-${id}` }
      const responses = await Promise.all(Array.from({ length: 6 }, () => send(endpoint, request, { headers })))
      const done = responses.filter((response) => response.status === endpoint.definition.status)
      expect(done.filter((response) => response.headers.get('idempotency-replayed') === null)).toHaveLength(1)
      const rest = responses.filter((response) => response.status !== endpoint.definition.status).map(outcome)
      expect(rest.filter((one) => one !== '409 IDEMPOTENCY_KEY_IN_USE')).toEqual([])
      expect(new Set(done.map((response) => JSON.stringify(withoutSecrets(endpoint, response.body)))).size).toBe(1)
    },
  )

  test.each(named(endpoints))('%s: returns documented responses to concurrent requests', async (_, endpoint) => {
    const request = await make(endpoint)
    const responses = await Promise.all(Array.from({ length: 6 }, () => send(endpoint, request)))
    const statuses = responses.map((response) => response.status)
    expect(statuses.filter((status) => status >= 500)).toEqual([])
    expect(statuses).toContain(endpoint.definition.status)
  })
})

function withoutSecrets({ definition }: Endpoint, body: unknown): unknown {
  const record = z.record(z.string(), z.unknown()).safeParse(body)
  if (!record.success || !definition.secrets) return body
  return Object.fromEntries(Object.entries(record.data).filter(([name]) => !definition.secrets?.includes(name)))
}
