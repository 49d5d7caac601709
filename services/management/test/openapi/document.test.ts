/** Tests that `/openapi.json` describes exactly the routes of the server, each with its errors, descriptions and examples. */

import { createOriginResolver } from '@keyward/address'
import { ALL_PERMISSIONS, PROBLEM_CODES } from '@keyward/contract'
import { api } from '@keyward/contract/api'
import { methodOf, type Operation, pathOf } from '@keyward/contract/operations'
import { createPool } from '@keyward/database'
import { createDatabase } from '@keyward/database/kysely'
import { createLogger } from '@keyward/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { Admission } from '../../src/admission/admission.ts'
import { createGates } from '../../src/admission/gates.ts'
import { createSignInLimiter } from '../../src/admission/sign-in-limits.ts'
import { createApp } from '../../src/app.ts'
import { environment } from '../../src/config.ts'
import { createDecidingValidators } from '../../src/dry-run/deciding-validators.ts'
import { endpoints } from '../../src/endpoints.ts'
import { StoredBytes } from '../../src/http/idempotency.ts'
import { createKeyring } from '../../src/keyring/keyring.ts'
import { createMetrics } from '../../src/metrics.ts'
import { describeNeeds, documentedErrors } from '../../src/openapi/management-api.ts'
import { VALIDATION_PATHS } from '../../src/openapi/validation-api.ts'
import { type Document, documentSchema, findResponse } from '../support/conformance.ts'
import { type Harness, masterKey, operatorToken, startHarness } from '../support/harness.ts'

let harness: Harness
let document: Document

beforeAll(async () => {
  harness = await startHarness()
  const response = await harness.call('GET', '/openapi.json', { token: null })
  document = documentSchema.parse(response.body)
})
afterAll(() => harness.close())

/** Returns JSON with a line for each operation and each component, so that a difference is as short as the change. */
function inLines(value: unknown, depth = 3): string {
  if (depth === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${inLines(member, depth - 1)}`)
  return `{\n${members.join(',\n')}\n}`
}

test('docs/openapi.json is the document that a server serves', async () => {
  const { body } = await harness.call('GET', '/openapi.json', { token: null })
  await expect(`${inLines(body)}\n`).toMatchFileSnapshot('../../../../docs/openapi.json')
})

test('every JSON body of the management API has a name, and its operations share their errors', () => {
  const own = Object.entries(document.paths).filter(([path]) => !Object.hasOwn(VALIDATION_PATHS, path))
  const operations = own.flatMap(([, item]) => Object.values(item))
  const bodies = operations.flatMap(({ requestBody, responses }) => [requestBody, responses['200'], responses['201']])
  const schemas = bodies.flatMap((body) => {
    const schema = mediaTypes.parse(body ?? {}).content?.['application/json']?.schema
    return schema === undefined ? [] : [schema]
  })
  expect(schemas.length).toBeGreaterThan(100)
  expect(schemas.filter(({ $ref }) => $ref === undefined)).toEqual([])
  const errors = operations.flatMap(({ responses }) => Object.entries(responses).filter(([status]) => status >= '400'))
  expect(errors.filter(([, { $ref }]) => $ref === undefined)).toEqual([])
})

const mediaTypes = z.object({
  content: z.record(z.string(), z.object({ schema: z.looseObject({ $ref: z.string().optional() }) })).optional(),
})
const layers = z.array(
  z.object({ route: z.object({ path: z.string(), methods: z.record(z.string(), z.boolean()) }).optional() }),
)

/** Returns the routes of Express. `_all` is the handler that responds with 405. */
async function routedOperations(): Promise<string[]> {
  const env = { DATABASE_URL: harness.database.url, OPERATOR_TOKEN: operatorToken, MASTER_KEY: masterKey }
  const config = environment.parse(env)
  const pool = createPool(config.databaseUrl, { name: 'test' })
  const dependencies = {
    db: createDatabase(pool),
    readDb: createDatabase(pool),
    transaction: () => Promise.reject(new Error('never called')),
    gates: createGates(() => undefined),
    storedBytes: new StoredBytes(),
    propagation: { wait: () => Promise.resolve({}) },
    keyring: createKeyring(config.masterKey, null),
    operatorTokens: [operatorToken],
    validators: createDecidingValidators([], createLogger('test', 'silent')),
    appFiles: { issue: () => Promise.reject(new Error('never called')) },
    log: createLogger('test', 'silent'),
    resolver: createOriginResolver(config.resolver),
    webhookNetwork: config.webhookNetwork,
    signInLimiter: createSignInLimiter({
      count: () => ({ used: 1, remainingMs: 1 }),
      add: () => undefined,
      close: () => Promise.resolve(),
    }),
    identityProvider: null,
    wakeCommerce: () => undefined,
    mailEnabled: false,
    portalMailEnabled: false,
  }
  const rateLimiter = {
    count: () => ({}),
    countResponse: () => undefined,
    requireFewFailures: () => undefined,
    countFailure: () => undefined,
  }
  const { db, gates, signInLimiter } = dependencies
  const app = createApp({
    dependencies,
    admission: new Admission({
      db,
      operatorTokens: [operatorToken],
      rateLimiter,
      signInLimiter,
      gates,
      onReject: () => undefined,
    }),
    onCredentialUse: () => undefined,
    corsOrigins: [],
    metrics: createMetrics(),
  })
  await pool.end()
  const routes = layers.parse(app.router.stack).flatMap((layer) => layer.route ?? [])
  return routes.flatMap(({ path, methods }) =>
    Object.keys(methods)
      .filter((method) => method !== '_all')
      .map((method) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
  )
}

test('every route is documented and every documented operation is a route', async () => {
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    path in VALIDATION_PATHS ? [] : Object.keys(operations).map((method) => `${method} ${path}`),
  )
  const console = [
    'get /',
    'get /console/assets/{name}',
    'get /console',
    'get /console/',
    'get /console/*path',
    'get /portal',
  ]
  const docs = ['get /openapi.json', 'get /docs', 'get /docs/', 'get /docs/icon.svg', 'get /docs/start.js']
  const pages = [...docs, ...console]
  expect((await routedOperations()).toSorted()).toEqual([...documented, ...pages].toSorted())
  expect(documented).toHaveLength(endpoints.length)
})

const SCHEMES: Readonly<Record<string, string[]>> = {
  operator: ['operatorToken'],
  apiKey: ['apiKey'],
  person: ['vendorToken', 'operatorToken'],
  portal: [],
  signature: [],
  nothing: [],
}

const operationSchema = z.looseObject({
  operationId: z.string(),
  summary: z.string().min(5),
  description: z.string(),
  tags: z.array(z.string()).length(1),
  security: z.array(z.record(z.string(), z.tuple([]))),
})

test('every operation documents its credential and every error code that it can return', () => {
  const ids = endpoints.map((endpoint) => {
    const {
      path,
      name,
      status,
      operation: { needs },
    } = endpoint
    const method = endpoint.method.toLowerCase()
    const operation = operationSchema.parse(document.paths[`/api/v1${path}`]?.[method])
    expect(operation.operationId).toBe(name)
    const responseOf = (of: number) => findResponse(document, `/api/v1${path}`, method, String(of)).documented
    expect(responseOf(status)).toBeDefined()
    expect(operation.description).toContain(describeNeeds(needs))
    expect(operation.security.flatMap(Object.keys)).toEqual(SCHEMES[needs] ?? ['vendorToken'])
    for (const { code, status: rejected } of documentedErrors(endpoint))
      expect(responseOf(rejected)?.['description']).toContain(`\`${code}\``)
    return name
  })
  expect(new Set(ids).size).toBe(ids.length)
})

const contract: [string, Operation][] = Object.values(api).flatMap((table) => Object.entries<Operation>(table))
const parameterSchema = z.object({ in: z.string(), name: z.string() })
const inputSchema = z.looseObject({
  parameters: z.array(parameterSchema).default([]),
  requestBody: z.unknown().optional(),
  responses: z.record(z.string(), z.looseObject({ headers: z.record(z.string(), z.unknown()).optional() })),
})

test.each(contract)('%s: documents the parameters, the body and the response of its operation', (name, operation) => {
  const { needs, query, body, returns, creates, continues, propagates, readOnly } = operation
  const method = methodOf(operation)
  const documented = document.paths[`/api/v1${pathOf(operation)}`]?.[method.toLowerCase()]
  expect(documented).toMatchObject({ operationId: name })
  const { parameters, requestBody, responses } = inputSchema.parse(documented)
  const given = (place: string) => parameters.flatMap((one) => (one.in === place ? [one.name] : [])).toSorted()
  const isRepeatable = method === 'POST' && readOnly !== true && !['nothing', 'signature', 'portal'].includes(needs)
  expect(given('path')).toEqual(Array.from(pathOf(operation).matchAll(/\{(\w+)\}/g), ([, one]) => one!).toSorted())
  expect(given('query')).toEqual(Object.keys(query?.shape ?? {}).toSorted())
  const isVersioned = endpoints.find((one) => one.name === name)?.versioned !== null
  expect(given('header')).toEqual([
    ...(isRepeatable ? ['Idempotency-Key'] : []),
    ...(isVersioned ? ['If-Match'] : []),
    ...(propagates ? ['Prefer'] : []),
  ])
  expect(requestBody !== undefined).toBe(body !== undefined)
  const { [returns === undefined ? '204' : continues ? '202' : creates ? '201' : '200']: success } = responses
  expect(success?.['content'] !== undefined).toBe(returns !== undefined)
  expect('location' in (success?.headers ?? {})).toBe(creates === true)
})

test('every error code and every permission is used by at least one endpoint', () => {
  const listed = new Set<string>(endpoints.flatMap(documentedErrors).map(({ code }) => code))
  expect(PROBLEM_CODES.filter((code) => !listed.has(code))).toEqual([])
  const needed = new Set<string>(endpoints.map(({ operation }) => operation.needs))
  expect(ALL_PERMISSIONS.filter((permission) => !needed.has(permission))).toEqual([])
})

const record = z.record(z.string(), z.unknown())

/** Yields every field of every object schema in the document, with its place in the document. */
function* fieldsOf(node: unknown, place: string): Generator<{ place: string; field: Record<string, unknown> }> {
  if (Array.isArray(node)) for (const [i, member] of node.entries()) yield* fieldsOf(member, `${place}/${i}`)
  const parsed = record.safeParse(node)
  if (Array.isArray(node) || !parsed.success) return
  const properties = record.safeParse(parsed.data['properties'])
  for (const [name, field] of Object.entries(properties.data ?? {}))
    yield { place: `${place}/${name}`, field: record.parse(field) }
  for (const [name, member] of Object.entries(parsed.data))
    if (name !== 'example' && name !== 'examples') yield* fieldsOf(member, `${place}/${name}`)
}

/** Returns whether the field contains other fields, which have examples instead. */
function isComposite(field: Record<string, unknown>): boolean {
  const items = record.safeParse(field['items']).data
  return '$ref' in field || 'properties' in field || (items !== undefined && ('$ref' in items || 'properties' in items))
}

test('every field has a description, and an example or fields with examples', () => {
  const bare: string[] = []
  let count = 0
  for (const { place, field } of fieldsOf(document, '')) {
    count++
    const described =
      '$ref' in field || 'allOf' in field || 'anyOf' in field || typeof field['description'] === 'string'
    const shown =
      isComposite(field) || 'example' in field || 'examples' in field || 'allOf' in field || 'anyOf' in field
    if (!described || !shown) bare.push(place)
  }
  expect(bare).toEqual([])
  expect(count).toBeGreaterThan(200)
})

test('the documentation page requires no credential and refers to no other host', async () => {
  const page = await harness.call('GET', '/docs', { token: null })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.text).not.toMatch(/https?:\/\//)
  for (const path of page.text.matchAll(/(?:src|href)="([^"]+)"/g))
    expect((await harness.call('GET', `/${path[1]}`, { token: null })).status).toBe(200)
  expect((await harness.call('GET', '/docs/assets/index.html', { token: null })).status).toBe(404)
})
