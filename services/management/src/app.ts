/** Builds the Express application from response headers, endpoints, documentation, console, and fallbacks for other paths. */

import { BASE_PATH } from '@keyward/contract/operations'
import express, { type Express } from 'express'

import { mountConsole } from './console/console.ts'
import { endpoints } from './endpoints.ts'
import { accessLog } from './http/access-log.ts'
import { cors, requestIds, securityHeaders } from './http/headers.ts'
import { Responder } from './http/response.ts'
import { methodNotAllowed, mountFallbacks, mountRoutes, rejectMeaninglessBodies } from './http/router.ts'
import type { HttpMetrics } from './metrics.ts'
import { mountDocs } from './openapi/docs-page.ts'
import { createPipeline, type PipelineOptions } from './pipeline.ts'

interface AppOptions extends Omit<PipelineOptions, 'responder'> {
  corsOrigins: readonly string[]
  metrics: HttpMetrics
}

let openApi: Promise<string> | undefined

/** Creates the document at its first request, because that takes about as long as a third of the start of the service. */
const readOpenApi = (): Promise<string> =>
  (openApi ??= import('./openapi/document.ts').then(({ createOpenApi }) => JSON.stringify(createOpenApi(endpoints))))

export function createApp({ corsOrigins, metrics, ...options }: AppOptions): Express {
  const app = express()
  app.set('etag', false)
  app.set('query parser', 'simple')
  app.enable('case sensitive routing')
  app.enable('strict routing')
  app.disable('x-powered-by')
  const { log } = options.dependencies
  const responder = new Responder(log)
  app.use(requestIds(), accessLog(log), metrics.observe, securityHeaders())
  app.use(rejectMeaninglessBodies(responder), cors(corsOrigins))
  const handlerOf = createPipeline({ ...options, responder })
  const routes = endpoints.map((one) => ({ method: one.method, path: one.path, handle: handlerOf(one) }))
  mountRoutes(app, BASE_PATH, routes, responder)
  mountDocs(app, readOpenApi, methodNotAllowed(responder))
  mountConsole(app, methodNotAllowed(responder))
  mountFallbacks(app, responder)
  return app
}
