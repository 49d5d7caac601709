/**
 * Every endpoint against every kind of bad, strange and repeated request. The endpoints come from their definitions, so that a new
 * one cannot be forgotten; every answer is judged by the OpenAPI document.
 */
import { ALL_PERMISSIONS, createdToken, type Permission, problem } from '@keyward/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../src/endpoints.ts'
import type { Endpoint } from '../src/http/endpoint.ts'
import { documented } from '../src/http/openapi.ts'
import { encodeCursor } from '../src/http/pagination.ts'
import { createJudge, documentSchema, type Judge } from './support/conformance.ts'
import { type Answer, type CallOptions, type Harness, operatorToken, startHarness } from './support/harness.ts'
import { type Request, unmatched, validRequest } from './support/requests.ts'
import { createVendor, expectBody, outcome, type Vendor } from './support/vendor.ts'

let harness: Harness
let vendor: Vendor
let stranger: Vendor
let judge: Judge

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
  stranger = await createVendor(harness, 'STANDARD', 'Stranger')
  const document = await harness.call('GET', '/openapi.json', { token: null })
  judge = createJudge(documentSchema.parse(document.body))
})
afterAll(() => harness.close())

test('there is a request for every endpoint', () => {
  expect(unmatched()).toEqual([])
})

/** The credential that may call the endpoint. */
function credential(endpoint: Endpoint, owner: Vendor = vendor): string {
  if (endpoint.access.kind === 'operator') return operatorToken
  return endpoint.access.kind === 'apiKey' ? owner.apiKey : owner.managementToken
}

async function send(endpoint: Endpoint, request: Request, options: CallOptions = {}): Promise<Answer> {
  const method = endpoint.definition.method.toUpperCase()
  const body = options.raw === undefined && request.body !== undefined ? { body: request.body } : {}
  const answer = await harness.call(method, request.path, { token: credential(endpoint), ...body, ...options })
  expect(judge.fault(endpoint, answer)).toBeNull()
  expect(answer.headers.get('x-request-id')).toBeTruthy()
  return answer
}

const make = (endpoint: Endpoint) => validRequest(endpoint.definition.operationId, { harness, vendor })
const takesBody = (endpoint: Endpoint) => endpoint.definition.body !== undefined
const canHaveBody = ({ definition }: Endpoint) => definition.method === 'post' || definition.method === 'patch'
const isList = ({ definition }: Endpoint) => definition.query?.shape['cursor'] !== undefined
const isRepeatable = ({ definition }: Endpoint) => definition.method === 'post' && definition.readOnly !== true
const hasParams = (endpoint: Endpoint) => endpoint.definition.params !== undefined

/** The endpoints that need a permission, each with its own. */
function permitted(): [string, Endpoint, Permission][] {
  return endpoints.flatMap((one): [string, Endpoint, Permission][] => {
    const { access, definition } = one
    return access.kind === 'vendor' && access.permission !== 'any'
      ? [[definition.operationId, one, access.permission]]
      : []
  })
}

async function tokenWith(permissions: readonly Permission[]): Promise<string> {
  const answer = await vendor.call('POST', 'tokens', { body: { name: 'lacking', permissions } })
  return expectBody(answer, 201, createdToken.required({ secret: true })).secret
}

const named = (list: readonly Endpoint[]) => list.map((one): [string, Endpoint] => [one.definition.operationId, one])

describe('a valid request', () => {
  test.each(named(endpoints))('%s: is answered as documented', async (_, endpoint) => {
    expect((await send(endpoint, await make(endpoint))).status).toBe(endpoint.definition.status)
  })
})

describe('credentials', () => {
  test.each(named(endpoints))('%s: none and a wrong one are refused', async (_, endpoint) => {
    const request = await make(endpoint)
    for (const token of [null, 'kwm_0000', `kwm_${'0'.repeat(36)}`, `${credential(endpoint)}x`, '%']) {
      const answer = await send(endpoint, request, { token })
      expect(outcome(answer)).toBe('401 UNAUTHENTICATED')
      expect(answer.headers.get('www-authenticate')).toContain('Bearer')
    }
    const basic = await send(endpoint, request, { token: null, headers: { authorization: 'Basic YTpi' } })
    expect(outcome(basic)).toBe('401 UNAUTHENTICATED')
  })

  test.each(named(endpoints))('%s: the wrong kind is refused', async (_, endpoint) => {
    const request = await make(endpoint)
    const all = [operatorToken, vendor.managementToken, vendor.apiKey]
    for (const token of all.filter((one) => one !== credential(endpoint)))
      expect(outcome(await send(endpoint, request, { token }))).toBe('403 FORBIDDEN')
  })

  test.each(permitted())('%s: the permission that is missing is named', async (_, endpoint, needed) => {
    const permissions = ALL_PERMISSIONS.filter((permission) => permission !== needed)
    const answer = await send(endpoint, await make(endpoint), { token: await tokenWith(permissions) })
    expect(outcome(answer)).toBe('403 FORBIDDEN')
    expect(answer.text).toContain(needed)
  })

  test('readOwnOrganization needs no permission', async () => {
    const answer = await harness.call('GET', 'organization', { token: await tokenWith([]) })
    expect(answer).toMatchObject({ status: 200, body: { id: vendor.id } })
  })
})

describe("another organization's", () => {
  const walled = endpoints.filter((endpoint) => endpoint.access.kind !== 'operator')

  test.each(named(walled.filter(hasParams)))('%s: ids are not known', async (_, endpoint) => {
    const answer = await send(endpoint, await make(endpoint), { token: credential(endpoint, stranger) })
    expect(outcome(answer)).toBe('404 NOT_FOUND')
    expect(answer.text).not.toContain(vendor.id)
  })

  test.each(named(walled.filter((one) => !hasParams(one))))('%s: rows are never shown', async (_, endpoint) => {
    const answer = await send(endpoint, await make(endpoint), { token: credential(endpoint, stranger) })
    const { rows } = await harness.database.pool.query<{ id: string }>(
      `select id from products where organization_id = $1 union all select id from customers where organization_id = $1
       union all select id from licenses where organization_id = $1 union all select id from access_rules where organization_id = $1
       union all select id from credentials where organization_id = $1 union all select id from members where organization_id = $1
       union all select id from alerts where organization_id = $1 union all select id from activity where organization_id = $1
       union all select id from audit_log where organization_id = $1 union all select id from signing_keys where organization_id = $1`,
      [vendor.id],
    )
    expect(rows.length).toBeGreaterThan(10)
    expect(rows.filter(({ id }) => answer.text.includes(id))).toEqual([])
  })

  test.each(named(walled.filter(isList)))('%s: cursors are refused', async (_, endpoint) => {
    const { path } = await make(endpoint)
    const list = { name: 'products', organizationId: vendor.id }
    const cursor = encodeCursor(list, '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b')
    const refusal = endpoint.definition.path === '/products' ? '200' : '422 INVALID_REQUEST'
    expect(outcome(await send(endpoint, { path: `${path}?cursor=${cursor}` }))).toBe(refusal)
    const foreign = await send(endpoint, { path: `${path}?cursor=${cursor}` }, { token: stranger.managementToken })
    expect(outcome(foreign)).toBe(hasParams(endpoint) ? '404 NOT_FOUND' : '422 INVALID_REQUEST')
  })
})

describe('malformed requests', () => {
  test.each(named(endpoints.filter(hasParams)))('%s: an id that is none is not known', async (_, endpoint) => {
    const { path, body } = await make(endpoint)
    const wrong = (id: string) => ({ path: path.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, id), ...(body && { body }) })
    for (const id of ['019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b', 'x', '%20', '%00', '1;select', 'a'.repeat(2_000)])
      expect(outcome(await send(endpoint, wrong(id)))).toBe('404 NOT_FOUND')
  })

  test.each(named(endpoints.filter(takesBody)))('%s: a body that is no JSON object is refused', async (_, endpoint) => {
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

  test.each(named(endpoints))('%s: an unknown parameter is refused', async (_, endpoint) => {
    const request = await make(endpoint)
    const answer = await send(endpoint, { ...request, path: `${request.path}?surprise=1` })
    expect(outcome(answer)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(answer.body).errors?.[0]?.pointer).toBe('?surprise')
  })

  test.each(named(endpoints.filter(canHaveBody)))('%s: an unknown field is refused', async (_, endpoint) => {
    const { path, body } = await make(endpoint)
    const answer = await send(endpoint, { path, body: { ...body, 'sur/prise': 1 } })
    expect(outcome(answer)).toBe('422 INVALID_REQUEST')
    expect(problem.parse(answer.body).errors?.map((error) => error.pointer)).toContain('#/sur~1prise')
  })

  test.each(named(endpoints.filter(takesBody)))('%s: no value of another type breaks it', async (_, endpoint) => {
    const { definition } = endpoint
    const { path, body = {} } = await make(endpoint)
    const refusals = definition.errors?.map(documented).map(({ code, status }) => `${status} ${code}`) ?? []
    const allowed = [String(definition.status), '422 INVALID_REQUEST', ...refusals]
    const values = [null, 0, -1.5, true, '', 'x', '\u0000', '\ud800', 'x'.repeat(100_000), [[]], { a: { b: 1 } }]
    for (const field of Object.keys(body))
      for (const value of values)
        expect(allowed).toContain(outcome(await send(endpoint, { path, body: { ...body, [field]: value } })))
    const deep = `{"metadata":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
    expect(outcome(await send(endpoint, { path }, { raw: deep }))).toBe('422 INVALID_REQUEST')
  })

  test.each(named(endpoints.filter(takesBody)))('%s: a body over 2 MiB is refused', async (_, endpoint) => {
    const { path } = await make(endpoint)
    const raw = `{"name":"${'x'.repeat(2 * 1024 * 1024)}"}`
    expect(outcome(await send(endpoint, { path }, { raw }))).toBe('413 PAYLOAD_TOO_LARGE')
  })
})

describe('repeated and concurrent requests', () => {
  test.each(named(endpoints.filter(isRepeatable)))('%s: an idempotency key answers as before', async (id, endpoint) => {
    const request = await make(endpoint)
    const headers = { 'idempotency-key': `repeat-${id}` }
    const first = await send(endpoint, request, { headers })
    expect(first.status).toBe(endpoint.definition.status)
    const repeated = await send(endpoint, request, { headers })
    expect(repeated.headers.get('idempotency-replayed')).toBe('true')
    expect(repeated.status).toBe(first.status)
    expect(repeated.body).toEqual(withoutSecrets(endpoint, first.body))
    expect(repeated.headers.get('location')).toBe(first.headers.get('location'))
  })

  test.each(named(endpoints.filter(isRepeatable)))('%s: one key at once does it once', async (id, endpoint) => {
    const request = await make(endpoint)
    const headers = { 'idempotency-key': `at-once-${id}` }
    const answers = await Promise.all(Array.from({ length: 6 }, () => send(endpoint, request, { headers })))
    const done = answers.filter((answer) => answer.status === endpoint.definition.status)
    expect(done.filter((answer) => answer.headers.get('idempotency-replayed') === null)).toHaveLength(1)
    const rest = answers.filter((answer) => answer.status !== endpoint.definition.status).map(outcome)
    expect(rest.filter((one) => one !== '409 IDEMPOTENCY_KEY_IN_USE')).toEqual([])
    expect(new Set(done.map((answer) => JSON.stringify(withoutSecrets(endpoint, answer.body)))).size).toBe(1)
  })

  test.each(named(endpoints))('%s: many at once are answered as documented', async (_, endpoint) => {
    const request = await make(endpoint)
    const answers = await Promise.all(Array.from({ length: 6 }, () => send(endpoint, request)))
    const statuses = answers.map((answer) => answer.status)
    expect(statuses.filter((status) => status >= 500)).toEqual([])
    expect(statuses).toContain(endpoint.definition.status)
  })
})

function withoutSecrets({ definition }: Endpoint, body: unknown): unknown {
  const record = z.record(z.string(), z.unknown()).safeParse(body)
  if (!record.success || !definition.secrets) return body
  return Object.fromEntries(Object.entries(record.data).filter(([name]) => !definition.secrets?.includes(name)))
}
