/** Builds the Express application from response headers, endpoints, documentation, console, and fallbacks for other paths. */

import type { RequestListener } from 'node:http'

import express, { type Express } from 'express'

import { mountConsole } from './console/console.ts'
import { endpoints } from './endpoints.ts'
import { accessLog } from './http/access-log.ts'
import { cors } from './http/cors.ts'
import type { Dependencies } from './http/dependencies.ts'
import { inOrder, type Middleware } from './http/middleware.ts'
import { requestIds } from './http/request-id.ts'
import {
  literalPosts,
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

/** Returns the handlers of every request, with or without Express. */
function commonHandlers({ log }: Dependencies, { observe }: HttpMetrics): Middleware[] {
  return [requestIds(), accessLog(log), observe, securityHeaders()]
}

/** Returns the listener of the HTTP server. It serves requests without Express if `literalPosts` contains their path. */
export function createListener(options: AppOptions): RequestListener {
  const app = createApp(options)
  const before = inOrder([...commonHandlers(options.dependencies, options.metrics), cors(options.corsOrigins)])
  const posts = literalPosts({ ...options, endpoints })
  return (request, response) => {
    const post = request.method === 'POST' ? posts.get(request.url ?? '') : undefined
    if (post) before(request, response, () => post(request, response))
    else app(request, response)
  }
}

export function createApp({ corsOrigins, metrics, ...options }: AppOptions): Express {
  const app = express()
  app.set('etag', false)
  app.set('query parser', 'simple')
  app.enable('case sensitive routing')
  app.enable('strict routing')
  app.disable('x-powered-by')
  const { dependencies } = options
  app.use(...commonHandlers(dependencies, metrics), rejectMeaninglessBodies(dependencies), cors(corsOrigins))
  mountEndpoints(app, { ...options, endpoints })
  mountDocs(app, createOpenApi(endpoints), methodNotAllowed(options.dependencies))
  mountConsole(app, methodNotAllowed(options.dependencies))
  mountFallbacks(app, options.dependencies)
  return app
}
