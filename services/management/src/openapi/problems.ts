/** The errors of the management API in `/openapi.json`: an example for every code, and the responses that operations share. */

import { problem, type ProblemCode, PROBLEM_CODES, PROBLEMS } from '@keyward/contract'
import type { ZodOpenApiExampleObject, ZodOpenApiResponseObject } from 'zod-openapi'

import type { DocumentedError } from '../operations/implement.ts'
import { type HeaderName, headerReferences, RATE_LIMIT_HEADERS } from './headers.ts'

const EXAMPLE_ID = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'

/** The members of examples that differ from the defaults in `exampleOf`. */
const DETAILS: Partial<Record<ProblemCode, object>> = {
  UNAUTHENTICATED: { detail: 'The credential is unknown, revoked or expired. Send a valid one.' },
  FORBIDDEN: { detail: 'This endpoint requires the permission licenses.write, which the credential does not have.' },
  NOT_FOUND: { detail: 'There is no license with this id.' },
  METHOD_NOT_ALLOWED: { detail: 'Method PUT is not allowed here. Allowed: GET, HEAD, POST.' },
  INVALID_REQUEST: {
    detail: '#/policy/maxMachines must be at least 1.',
    errors: [{ pointer: '#/policy/maxMachines', detail: 'must be at least 1' }],
  },
  RULE_EXISTS: { ruleId: EXAMPLE_ID },
  QUOTA_EXCEEDED: { quota: { name: 'licenses', limit: 1_000_000, used: 1_000_000 } },
}

function exampleOf(code: ProblemCode): ZodOpenApiExampleObject {
  const { status, title } = PROBLEMS[code]
  const value = {
    type: `urn:keyward:problem:${code.toLowerCase().replaceAll('_', '-')}`,
    title,
    status,
    detail: title,
    instance: `/api/v1/licenses/${EXAMPLE_ID}`,
    code,
    requestId: 'f3b1c2d4-5d2e-4f10-8a4b-6c7d8e9f0a1b',
    ...DETAILS[code],
  }
  return { summary: title, value }
}

/** An example for every code, as components. */
export const PROBLEM_EXAMPLES: Record<string, ZodOpenApiExampleObject> = Object.fromEntries(
  PROBLEM_CODES.map((code) => [code, exampleOf(code)]),
)

/** Errors that are returned before a request is counted. Their responses have no rate limit headers. */
export const PROTOCOL_CODES = [
  'MALFORMED_HTTP',
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'EXPECTATION_FAILED',
  'HEADERS_TOO_LARGE',
] as const satisfies readonly ProblemCode[]

const WITHOUT_RATE_LIMIT = new Set<ProblemCode>([...PROTOCOL_CODES, 'UNAUTHENTICATED'])

const OWN_HEADERS: Partial<Record<ProblemCode, HeaderName>> = {
  UNAUTHENTICATED: 'www-authenticate',
  VERSION_MISMATCH: 'etag',
  METHOD_NOT_ALLOWED: 'allow',
  IDEMPOTENCY_KEY_IN_USE: 'retry-after',
  RATE_LIMITED: 'retry-after',
  UNAVAILABLE: 'retry-after',
}

/** Returns the response for the error codes of one status. */
function problemResponse(codes: readonly ProblemCode[]): ZodOpenApiResponseObject {
  const own = codes.flatMap((code) => OWN_HEADERS[code] ?? [])
  const limits = codes.every((code) => WITHOUT_RATE_LIMIT.has(code)) ? [] : RATE_LIMIT_HEADERS
  const examples: Record<string, { $ref: string }> = {}
  for (const code of codes) examples[code] = { $ref: `#/components/examples/${code}` }
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join('\n\n'),
    headers: headerReferences(['x-request-id', ...own, ...limits]),
    content: { 'application/problem+json': { schema: problem, examples } },
  }
}

type Codes = readonly ProblemCode[]

/** Returns the codes of the errors by status, in ascending order. */
function codesByStatus(errors: readonly DocumentedError[]): [status: number, codes: Codes][] {
  const groups = Map.groupBy(errors, ({ status }) => status)
  return [...groups]
    .map(([status, group]): [number, Codes] => [status, group.map(({ code }) => code)])
    .toSorted(([a], [b]) => a - b)
}

/** Returns the name of the response that all operations with the same codes for a status share. */
const nameOf = (codes: Codes): string => codes.join('.')

/** Returns the responses for the error codes of all operations, by name, as components. */
export function sharedResponses(operations: readonly DocumentedError[][]): Record<string, ZodOpenApiResponseObject> {
  const lists = operations.flatMap((errors) => codesByStatus(errors).map(([, codes]) => codes))
  return Object.fromEntries(lists.map((codes) => [nameOf(codes), problemResponse(codes)]))
}

/** Returns references to the error responses of an operation, by status. */
export function problemResponses(errors: readonly DocumentedError[]): Record<`${4 | 5}${string}`, { $ref: string }> {
  return Object.fromEntries(
    codesByStatus(errors).map(([status, codes]) => [`${status}`, { $ref: `#/components/responses/${nameOf(codes)}` }]),
  )
}
