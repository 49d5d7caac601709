/** The Express application: what every answer has, the endpoints, the documentation, and what no route took. */
import express, { type Express } from 'express'
import helmet from 'helmet'

import { endpoints } from './endpoints.ts'
import { cors } from './http/cors.ts'
import { mountDocs } from './http/docs.ts'
import { createOpenApi } from './http/openapi.ts'
import { methodRefuser, mountEndpoints, mountRest, requestIds, type RouterOptions } from './http/router.ts'
import type { HttpMetrics } from './metrics.ts'

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
  app.use(requestIds(), metrics.observe, helmet(), cors(corsOrigins))
  mountEndpoints(app, { ...options, endpoints })
  mountDocs(app, createOpenApi(endpoints), methodRefuser(options.services))
  mountRest(app, options.services)
  return app
}
