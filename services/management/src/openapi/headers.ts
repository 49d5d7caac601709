/** The response headers of both APIs. Every header is described once; responses refer to it by its name. */

import type { ZodOpenApiComponentsObject } from 'zod-openapi'

type Schema = { type: 'string' | 'integer' | 'boolean' }

const text: Schema = { type: 'string' }
const number: Schema = { type: 'integer' }

export const HEADERS = {
  'accept-encoding': { description: 'The encodings that are supported.', schema: text, example: 'identity' },
  allow: { description: 'The allowed methods.', schema: text, example: 'GET, HEAD' },
  'content-disposition': {
    description: 'The file name of the download.',
    schema: text,
    example: 'attachment; filename="license-019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b.lic"',
  },
  date: {
    description: 'The time of the service.',
    schema: text,
    example: 'Fri, 20 Nov 2026 09:30:00 GMT',
  },
  etag: {
    description: 'The version of the resource in the response, for `If-Match`.',
    schema: text,
    example: '"2026-11-20T09:30:00.000Z"',
  },
  'idempotency-replayed': {
    description: '`true` if this is the stored response of an earlier request with the same `Idempotency-Key`.',
    schema: text,
    example: 'true',
  },
  'keyward-signature': {
    description: 'The signature of the response. Present if the request contains `nonce` and `kid`.',
    schema: text,
    example: '<delegation>.<signature>.<statement>.<signature>.<path>',
  },
  location: {
    description: 'The path of the new resource.',
    schema: text,
    example: '/api/v1/products/019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b',
  },
  'preference-applied': { description: 'Present if `Prefer: wait` was honored.', schema: text, example: 'wait' },
  ratelimit: {
    description: 'The requests that are left (`r`) and the seconds until the window ends (`t`).',
    schema: text,
    example: '"credential";r=998;t=7',
  },
  'ratelimit-limit': { description: 'The requests that are allowed in a window.', schema: number, example: 1_000 },
  'ratelimit-policy': {
    description: 'The requests that are allowed in a window (`q`), and the length of the window in seconds (`w`).',
    schema: text,
    example: '"credential";q=1000;w=10',
  },
  'ratelimit-remaining': { description: 'The requests that are left in this window.', schema: number, example: 998 },
  'ratelimit-reset': { description: 'The seconds until the window ends.', schema: number, example: 7 },
  'retry-after': { description: 'The seconds to wait before the next attempt.', schema: number, example: 1 },
  'www-authenticate': { description: 'The authentication scheme to use.', schema: text, example: 'Bearer' },
  'x-applied-by': {
    description:
      'The number of validators that have applied the change, and the number of live validators. Present with `Prefer: wait`.',
    schema: text,
    example: '3/3',
  },
  'x-keyward-code': { description: 'The code of the verdict.', schema: text, example: 'VALID' },
  'x-keyward-expires': {
    description: 'The expiry of the license. Absent if the license is unknown or has no expiry.',
    schema: text,
    example: '2030-01-01T00:00:00.000Z',
  },
  'x-keyward-grace-ends': {
    description: 'The end of the grace period. Present during the period.',
    schema: text,
    example: '2030-01-08T00:00:00.000Z',
  },
  'x-request-id': {
    description: "The id of the request: the caller's own `x-request-id` if it is well-formed, else a new one.",
    schema: text,
    example: 'f3b1c2d4-5d2e-4f10-8a4b-6c7d8e9f0a1b',
  },
} as const satisfies NonNullable<ZodOpenApiComponentsObject['headers']>

export type HeaderName = keyof typeof HEADERS

/** The headers that a response to an authenticated request has. */
export const RATE_LIMIT_HEADERS: readonly HeaderName[] = [
  'ratelimit',
  'ratelimit-policy',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
]

/** Returns references to headers, for a response. */
export function headerReferences(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
