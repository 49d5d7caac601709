/**
 * Implements CORS for the configured origins. Without configured origins, no response has a CORS header, and a preflight request gets 405
 * like every OPTIONS request.
 */

import type { Middleware } from './middleware.ts'

const ALLOWED_HEADERS = 'authorization, content-type, idempotency-key, prefer, x-request-id'
const EXPOSED_HEADERS =
  'location, retry-after, x-request-id, x-applied-by, preference-applied, idempotency-replayed, ratelimit, ratelimit-policy'

export function cors(origins: readonly string[]): Middleware {
  return (request, response, next) => {
    const origin = request.headers.origin
    if (origins.length > 0) response.setHeader('vary', 'origin')
    if (origin === undefined || !origins.includes(origin)) return next()
    response.setHeader('access-control-allow-origin', origin)
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      response.setHeader('access-control-expose-headers', EXPOSED_HEADERS)
      return next()
    }
    response.setHeader('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE')
    response.setHeader('access-control-allow-headers', ALLOWED_HEADERS)
    response.setHeader('access-control-max-age', '600')
    response.statusCode = 204
    response.end()
  }
}
