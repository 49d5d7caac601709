/**
 * Measures the duration of requests by method, route and status, and counts rejections by the gates. No label contains a caller or an
 * address.
 */

import type { RequestHandler } from 'express'
import { Counter, Histogram, Registry } from 'prom-client'

import { routeOf } from './http/access-log.ts'

export interface HttpMetrics {
  registry: Registry
  observe: RequestHandler
  /** Counts a request that was rejected because its organization already uses its share of the connections. */
  countOverShare: () => void
}

export function createMetrics(): HttpMetrics {
  const registry = new Registry()
  const duration = new Histogram({
    name: 'keyward_management_request_duration_seconds',
    help: 'Duration of a request to the management API.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  const overShare = new Counter({
    name: 'keyward_management_over_share_total',
    help: "Requests rejected with 503 because they exceed their organization's share of the connections.",
    registers: [registry],
  })
  return {
    registry,
    countOverShare: () => overShare.inc(),
    observe(request, response, next) {
      const stop = duration.startTimer()
      response.once('finish', () => {
        stop({ method: request.method ?? '', route: routeOf(request), status: response.statusCode })
      })
      next()
    },
  }
}
