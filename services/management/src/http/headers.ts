/** Sets the headers that responses have whatever serves them: request ids, security headers and CORS. */

import { randomUUID } from 'node:crypto'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

import type { RequestHandler } from 'express'
import helmet from 'helmet'

/** Returns the caller's `x-request-id` if it has 1 to 128 letters, digits or characters of `_.:+/=-`. Otherwise returns a new id. */
export function newRequestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\w.:+/=-]{1,128}$/.test(given) ? given : randomUUID()
}

/** Sets `x-request-id` on every response. Problems and logs contain it, too. */
export function requestIds(): RequestHandler {
  return (request, response, next) => {
    response.setHeader('x-request-id', newRequestId(request))
    next()
  }
}

/** Sets the security headers of helmet. They are equal for all responses, so they are computed once. */
export function securityHeaders(): RequestHandler {
  const sample = new ServerResponse(new IncomingMessage(new Socket()))
  helmet()(sample.req, sample, () => undefined)
  const headers = Object.entries(sample.getHeaders()).map(([name, value]) => [name, String(value)] as const)
  return (_request, response, next) => {
    for (const [name, value] of headers) response.setHeader(name, value)
    next()
  }
}

const ALLOWED_HEADERS = 'authorization, content-type, idempotency-key, if-match, prefer, x-request-id'
const EXPOSED_HEADERS =
  'etag, location, retry-after, x-request-id, x-applied-by, preference-applied, idempotency-replayed, ratelimit, ratelimit-policy'

/**
 * Implements CORS for the configured origins. Without configured origins, no response has a CORS header, and a preflight request gets 405
 * like every OPTIONS request.
 */
export function cors(origins: readonly string[]): RequestHandler {
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
