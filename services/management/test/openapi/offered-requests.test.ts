/**
 * Sends the request of every operation as the page at /docs offers it: with the examples of the body and of required parameters, and with
 * the defaults of optional parameters. Only the invented ids of a request may be invalid.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import {
  CODES,
  deactivateRequest,
  problem,
  validateBatchRequest,
  validateBatchResponse,
  validateRequestV1,
  validateRequestV2,
  validationErrorCode,
  validationErrorV2,
  verdictV1,
  verdictV2,
} from '@keyward/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../../src/endpoints.ts'
import { createOpenApi } from '../../src/openapi/document.ts'
import { exampleOf } from '../../src/openapi/offered-requests.ts'
import { operatorToken, startHarnessWithValidator } from '../support/harness.ts'
import { NO_MAIL_SERVER } from '../support/mail-server.ts'
import { createVendor, type Vendor } from '../support/vendor.ts'

const parameter = z.object({
  in: z.enum(['path', 'query', 'header']),
  name: z.string(),
  required: z.boolean().optional(),
  example: z.unknown().optional(),
  schema: z.looseObject({ example: z.unknown().optional(), default: z.unknown().optional() }),
})
const example = z.object({ value: z.looseObject({ code: z.string().optional() }) })
const content = z.object({
  example: z.unknown().optional(),
  examples: z.record(z.string(), z.unknown()).optional(),
})
const operationSchema = z.object({
  operationId: z.string(),
  security: z.array(z.record(z.string(), z.unknown())),
  parameters: z.array(parameter).default([]),
  requestBody: z.object({ content: z.object({ 'application/json': content }) }).optional(),
  responses: z.record(z.string(), z.object({ content: z.record(z.string(), content).optional() })),
})
const paths = z.record(z.string(), z.record(z.string(), operationSchema)).parse(createOpenApi(endpoints).paths)
// The page at /docs has no session of a customer.
const operations = Object.entries(paths)
  .filter(([path]) => !path.startsWith('/api/v1/portal/'))
  .flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => Object.assign(operation, { path, method })),
  )
type Operation = (typeof operations)[number]

let harness: Awaited<ReturnType<typeof startHarnessWithValidator>>
let vendor: Vendor
beforeAll(async () => {
  harness = await startHarnessWithValidator(NO_MAIL_SERVER)
  vendor = await createVendor(harness)
  const readKey = () => fetchFromValidator('GET', '/api/v1/public-key', { token: vendor.apiKey, body: undefined })
  while ((await readKey()).status !== 200) await sleep(20)
})
afterAll(() => harness.close())

const textOf = (value: unknown): string => z.union([z.string(), z.number()]).parse(value).toString()

/** Returns the path with its parameters and the query, as the page sends them. */
function offeredPath({ path, parameters }: Operation): string {
  const query = new URLSearchParams()
  let filled = path
  for (const { in: place, name, schema, example: own } of parameters) {
    const value = own ?? schema.example ?? schema.default
    if (place === 'path') filled = filled.replace(`{${name}}`, encodeURIComponent(textOf(value)))
    else if (place === 'query' && value !== undefined) query.set(name, textOf(value))
    else expect([name, value]).toEqual([name, undefined])
  }
  return query.size === 0 ? filled : `${filled}?${query.toString()}`
}

async function send(operation: Operation) {
  const [scheme = ''] = operation.security.flatMap(Object.keys)
  const secrets = new Map([
    ['apiKey', vendor.apiKey],
    ['vendorToken', vendor.managementToken],
    ['operatorToken', operatorToken],
  ])
  const token = secrets.get(scheme) ?? ''
  const body = operation.requestBody?.content['application/json'].example
  const isCheck = /^\/api\/v2\/|^\/api\/v1\/(?:(?:de)?activate|validate|public-keys?)$/.test(operation.path)
  const call = isCheck ? fetchFromValidator : harness.call
  return call(operation.method.toUpperCase(), offeredPath(operation), { token, body })
}

async function fetchFromValidator(
  method: string,
  path: string,
  { token = '', body }: { token?: string; body: unknown },
) {
  const response = await fetch(`http://127.0.0.1:${harness.validator.port}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const parsed: unknown = JSON.parse(text)
  return { status: response.status, text, body: parsed }
}

// The requests are sent in the order of the document. Deletions and state changes use invented ids, so they change nothing.
const byMethod = (method: string) => operations.filter((operation) => operation.method === method)

describe('as offered on the page', () => {
  test.each(byMethod('get'))(
    'the offered request GET $path returns 200, or 404 for an invented id, or 403 without a license key',
    async (operation) => {
      const { status, text } = await send(operation)
      const expected = operation.path === '/api/v2/authorize' ? 403 : operation.path.includes('{') ? 404 : 200
      expect([status, text]).toEqual([expected, expect.any(String)])
    },
  )

  test.each(operations.filter(({ method }) => method !== 'get'))(
    'the offered request $method $path is well-formed',
    async (operation) => {
      const { status, body, text } = await send(operation)
      if (status < 400) return
      // The response is a verdict, because no license has the key of the example.
      if (verdictV2.safeParse(body).success) return
      const { code, errors = [] } = problem.parse(body)
      const wrongIds = errors.filter(
        ({ pointer }) => !/\/(?:productId|customerId|licenseId|priceId|scopeId|into)$/.test(pointer),
      )
      // The token of the example belongs to no credential.
      if (operation.operationId === 'createSession' && code === 'UNAUTHENTICATED') return
      expect([code, wrongIds, text]).toEqual([expect.stringMatching(/^(?:NOT_FOUND|INVALID_REQUEST)$/), [], text])
    },
  )

  test.each(['createProduct', 'createCustomer', 'createAccessRule', 'createToken', 'createApiKey', 'createMember'])(
    'the offered request of %s succeeds or reports that the resource exists',
    async (id) => {
      const operation = operations.find(({ operationId }) => operationId === id)
      if (!operation) throw new Error(`There is no operation ${id}`)
      const { status, body } = await send(operation)
      const again = z.object({ code: z.string().optional() }).parse(body).code
      expect(status === 201 || again === 'RULE_EXISTS' || again === 'MEMBER_EXISTS').toBe(true)
    },
  )
})

test('no optional parameter has an example', () => {
  const prefilled = operations.flatMap(({ operationId, parameters }) =>
    parameters
      .filter(({ required, schema, example: own }) => required !== true && (own ?? schema.example) !== undefined)
      .map(({ name }) => `${operationId} ${name}`),
  )
  expect(prefilled).toEqual([])
})

test('the examples of the validation API match its schemas', () => {
  const byId = new Map(operations.map((operation) => [operation.operationId, operation]))
  const bodyOf = (id: string) => byId.get(id)?.requestBody?.content['application/json'].example
  expect(validateRequestV2.safeParse(bodyOf('validateLicenseV2')).success).toBe(true)
  expect(validateRequestV1.safeParse(bodyOf('validateLicenseV1')).success).toBe(true)
  expect(deactivateRequest.safeParse(bodyOf('deactivateMachine')).success).toBe(true)
  expect(validateBatchRequest.safeParse(bodyOf('validateLicensesV2')).success).toBe(true)
  const examplesOf = (id: string, status: string) =>
    Object.values(byId.get(id)?.responses[status]?.content?.['application/json']?.examples ?? {}).map(
      (each) => example.parse(each).value,
    )
  for (const status of ['200', '400'])
    for (const value of examplesOf('validateLicenseV2', status))
      expect(verdictV2.or(validationErrorV2).safeParse(value).success).toBe(true)
  for (const value of examplesOf('validateLicenseV1', '200')) expect(verdictV1.safeParse(value).success).toBe(true)
  for (const value of examplesOf('validateLicensesV2', '200'))
    expect(validateBatchResponse.safeParse(value).success).toBe(true)
  const codes = (id: string) =>
    new Set(
      Object.keys(byId.get(id)?.responses ?? {})
        .flatMap((status) => examplesOf(id, status))
        .map(({ code }) => code),
    )
  const ofChecks = validationErrorCode.exclude(['NOT_ENABLED']).options
  for (const id of ['validateLicenseV1', 'validateLicenseV2'])
    expect(codes(id)).toEqual(new Set([...CODES, ...ofChecks]))
  expect(codes('deactivateMachine')).toEqual(new Set([undefined, ...validationErrorCode.options]))
})

test('derives the example of a schema from required fields, arrays and references', () => {
  const components = { Name: { type: 'string', example: 'Ada' } }
  const properties = { names: { type: 'array', items: { $ref: '#/components/schemas/Name' } }, note: { example: 'x' } }
  expect(exampleOf({ required: ['names'], properties }, components)).toEqual({ names: ['Ada'] })
  expect(() => exampleOf({ required: ['size'], properties: { size: { type: 'integer' } } }, components)).toThrow(
    'has no example',
  )
})
