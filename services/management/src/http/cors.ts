/** CORS for the listed origins alone; without any, no header is sent and a preflight is just a method that is not taken. */
import type { RequestHandler } from 'express'

const allowedHeaders = 'authorization, content-type, idempotency-key, prefer, x-request-id'
const exposedHeaders =
  'location, retry-after, x-request-id, x-applied-by, preference-applied, idempotency-replayed, ratelimit, ratelimit-policy'

export function cors(origins: readonly string[]): RequestHandler {
  return (request, response, next) => {
    const origin = request.headers.origin
    if (origins.length > 0) response.vary('origin')
    if (origin === undefined || !origins.includes(origin)) return next()
    response.setHeader('access-control-allow-origin', origin)
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) {
      response.setHeader('access-control-expose-headers', exposedHeaders)
      return next()
    }
    response.setHeader('access-control-allow-methods', 'GET, POST, PATCH, DELETE')
    response.setHeader('access-control-allow-headers', allowedHeaders)
    response.setHeader('access-control-max-age', '600')
    response.status(204).end()
  }
}
