/** Mounts handlers as Express routes. Each path has one route, which returns 405 with `Allow` for other methods. */

import type { ErrorRequestHandler, Express, NextFunction, Request, RequestHandler, Response } from 'express'

import { ApiError } from './problem.ts'
import { NO_SHARE, type Responder } from './response.ts'
import { hasMeaninglessBody } from './unread-body.ts'

const METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const

export interface Route {
  method: keyof typeof METHODS
  /** The path in OpenAPI notation, such as `/products/{id}`. */
  path: string
  handle: RequestHandler
}

/** Rejects requests that have a large body although their method allows none. */
export function rejectMeaninglessBodies(responder: Responder): RequestHandler {
  return (request, response, next) => {
    if (!hasMeaninglessBody(request)) return next()
    const detail = `Method ${request.method} takes no body. Send the request without a body.`
    return responder.sendError(request, response, new ApiError('PAYLOAD_TOO_LARGE', detail), NO_SHARE)
  }
}

/** Returns a function that creates handlers, which send 405. `allow` is the value of the `Allow` header. */
export function methodNotAllowed(responder: Responder): (allow: string) => RequestHandler {
  return (allow) => (request, response) => {
    const detail = `Method ${request.method} is not allowed here. Allowed: ${allow}.`
    const error = new ApiError('METHOD_NOT_ALLOWED', detail, { headers: { allow } })
    responder.sendError(request, response, error, NO_SHARE)
  }
}

/** Sorts `/licenses/file` before `/licenses/{id}`, so that the literal path matches first. */
function literalFirst(a: string, b: string): number {
  const rank = (path: string) => path.replaceAll('{', '~')
  return rank(a) < rank(b) ? -1 : Number(rank(a) > rank(b))
}

/** Mounts the routes below `base`. */
export function mountRoutes(app: Express, base: string, routes: readonly Route[], responder: Responder): void {
  const byPath = Map.groupBy(routes, ({ path }) => path)
  for (const path of [...byPath.keys()].toSorted(literalFirst)) {
    const ofPath = byPath.get(path) ?? []
    const route = app.route(base + path.replaceAll(/\{(\w+)\}/g, ':$1'))
    for (const { method, handle } of ofPath) route[METHODS[method]](handle)
    const allow = ofPath.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    route.all(methodNotAllowed(responder)(allow))
  }
}

function unknownPath(request: Request): ApiError {
  return new ApiError('NOT_FOUND', `The path ${request.path} does not exist. All paths are listed at /docs.`)
}

/** Mounts the last two handlers, one for paths without a route and one for errors that occur before a route. */
export function mountFallbacks(app: Express, responder: Responder): void {
  app.use((request: Request, response: Response) => {
    responder.sendError(request, response, unknownPath(request), NO_SHARE)
  })
  app.use(((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const isMalformedPath =
      error instanceof URIError || (error instanceof Error && 'status' in error && error.status === 400)
    responder.sendError(request, response, isMalformedPath ? unknownPath(request) : error, NO_SHARE)
  }) satisfies ErrorRequestHandler)
}
