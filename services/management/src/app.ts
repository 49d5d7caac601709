/** Builds the Express application from response headers, endpoints, documentation, console, and fallbacks for other paths. */

import express, { type Express } from 'express'

import { mountConsole } from './console/console.ts'
import { endpoints } from './endpoints.ts'
import { accessLog } from './http/access-log.ts'
import { cors } from './http/cors.ts'
import { requestIds } from './http/request-id.ts'
import {
  methodNotAllowed,
  mountEndpoints,
  mountFallbacks,
  rejectMeaninglessBodies,
  type RouterOptions,
} from './http/router.ts'
import { securityHeaders } from './http/security-headers.ts'
import type { HttpMetrics } from './metrics.ts'
import { mountDocs } from './openapi/docs-page.ts'
import { createOpenApi } from './openapi/document.ts'

export interface AppOptions extends Omit<RouterOptions, 'endpoints'> {
  corsOrigins: readonly string[]
  metrics: HttpMetrics
}

export function createApp({ corsOrigins, metrics, ...options }: AppOptions): Express {
  const app = express()
  app.set('etag', false)
  app.set('query parser', 'simple')
  app.enable('case sensitive routing')
  app.enable('strict routing')
  app.disable('x-powered-by')
  app.use(
    requestIds(),
    accessLog(options.dependencies.log),
    metrics.observe,
    securityHeaders(),
    rejectMeaninglessBodies(options.dependencies),
    cors(corsOrigins),
  )
  mountEndpoints(app, { ...options, endpoints })
  mountDocs(app, createOpenApi(endpoints), methodNotAllowed(options.dependencies))
  mountConsole(app, methodNotAllowed(options.dependencies))
  mountFallbacks(app, options.dependencies)
  return app
}
