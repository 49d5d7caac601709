/**
 * Writes one log line per request, and runs the request in its trace. The line contains the pattern of the route instead of the path. It
 * contains no address, query, body or credential (docs/api.md#d1).
 */

import type { IncomingMessage } from 'node:http'

import { continueTrace, type Logger, runInTrace } from '@keyward/runtime'
import type { RequestHandler } from 'express'

/**
 * Returns the handler, which must follow `requestIds`. A response that the caller did not receive completely is logged with the field
 * `aborted`.
 */
export function accessLog(log: Pick<Logger, 'info'>): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now()
    const { traceparent } = request.headers
    const trace = continueTrace(typeof traceparent === 'string' ? traceparent : undefined)
    const { traceId, spanId } = trace
    response.once('close', () => {
      const durationMs = Math.round(performance.now() - startedMs)
      const route = routeOf(request)
      const requestId = response.getHeader('x-request-id')
      const aborted = response.writableFinished ? {} : { aborted: true }
      const { method } = request
      log.info(
        { requestId, traceId, spanId, method, route, status: response.statusCode, durationMs, ...aborted },
        'request',
      )
    })
    runInTrace(trace, next)
  }
}

/** Returns the pattern of the route that serves the request, or `none`. */
export function routeOf(request: IncomingMessage & { route?: unknown }): string {
  const { route } = request
  if (typeof route !== 'object' || route === null || !('path' in route)) return 'none'
  return typeof route.path === 'string' ? route.path : 'none'
}
