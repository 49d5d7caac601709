/**
 * Express over the endpoint definitions: one route a path, 405 with `Allow` for its other methods, problems for everything else.
 * Order for a request: credential, rate limit, permission, body, idempotency key, schema, handler; so strangers learn nothing and cost little.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import type { ErrorRequestHandler, Express, NextFunction, Request, RequestHandler, Response } from 'express'

import { authenticate, authorize } from './authentication.ts'
import { readJson } from './body.ts'
import type { Services } from './context.ts'
import type { Endpoint } from './endpoint.ts'
import { idempotentRequest, type WireAnswer } from './idempotency.ts'
import { basePath } from './paths.ts'
import { Refusal, toRefusal } from './problem.ts'
import { parsePrefer } from './propagation.ts'
import type { RateLimiter } from './rate-limit.ts'
import { perform, refuse } from './transaction.ts'

export interface RouterOptions {
  services: Services
  endpoints: readonly Endpoint[]
  rateLimiter: RateLimiter
  /** Told about every credential that was used. */
  noteUse: (credentialId: string) => void
}

/** The caller's own id when it is harmless, or a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\w.:+/=-]{1,128}$/.test(given) ? given : randomUUID()
}

export function requestIds(): RequestHandler {
  return (request, response, next) => {
    response.setHeader('x-request-id', requestIdOf(request))
    next()
  }
}

function send(response: Response, answer: WireAnswer): void {
  if (response.headersSent) return
  response.status(answer.status).setHeaders(new Map(Object.entries(answer.headers)))
  response.setHeader('cache-control', 'no-store')
  response.end(answer.body === '' ? undefined : Buffer.from(answer.body))
}

function requestId(response: Response): string {
  return String(response.getHeader('x-request-id'))
}

function sendError(services: Services, request: Request, response: Response, error: unknown): void {
  const { refusal, unexpected } = toRefusal(error)
  const id = requestId(response)
  if (unexpected) services.log.error({ err: error, requestId: id, method: request.method }, 'request failed')
  send(response, refuse(refusal, request.path, id))
}

function headerReader(request: Request): (name: string) => string {
  return (name) => {
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(',') : (value ?? '')
  }
}

async function serve(
  options: RouterOptions,
  endpoint: Endpoint,
  request: Request,
  response: Response,
): Promise<WireAnswer> {
  const { services } = options
  const { definition, access } = endpoint
  const caller = await authenticate(services.db, services.operatorToken, request.headers.authorization)
  response.setHeaders(new Map(Object.entries(await options.rateLimiter.count(caller.owner))))
  if (caller.kind !== 'operator') options.noteUse(caller.owner)
  authorize(access, caller)
  const takesBody = definition.method === 'post' || definition.method === 'patch'
  const body = takesBody ? await readJson(request, response) : undefined
  const repeatable = definition.method === 'post' && definition.readOnly !== true
  const key = repeatable ? request.get('idempotency-key') : undefined
  return perform(services, {
    endpoint,
    prepare: () => endpoint.prepare({ params: request.params, query: request.query, body }),
    caller,
    client: () => services.resolver.resolveText(request.socket.remoteAddress, headerReader(request)),
    path: request.path,
    requestId: requestId(response),
    idempotent: idempotentRequest(caller.owner, key, { method: request.method, path: request.path, body }),
    waitSeconds: definition.propagates === true ? parsePrefer(request.get('prefer')) : null,
  })
}

/** Makes the handler for the methods that a path does not take. */
export function methodRefuser(services: Services): (allow: string) => RequestHandler {
  return (allow) => (request, response) => {
    const methods = allow.split(', ')
    const last = methods.pop() ?? ''
    const taken = methods.length === 0 ? `${last} is` : `${methods.join(', ')} and ${last} are`
    const detail = `${request.method} is not taken here; ${taken}.`
    sendError(services, request, response, new Refusal('METHOD_NOT_ALLOWED', detail, { headers: { allow } }))
  }
}

/** `/licenses/file` is looked at before `/licenses/{id}`. */
function literalFirst(a: string, b: string): number {
  const rank = (path: string) => path.replaceAll('{', '~')
  return rank(a) < rank(b) ? -1 : Number(rank(a) > rank(b))
}

export function mountEndpoints(app: Express, options: RouterOptions): void {
  const byPath = Map.groupBy(options.endpoints, (endpoint) => endpoint.definition.path)
  for (const path of [...byPath.keys()].toSorted(literalFirst)) {
    const endpoints = byPath.get(path) ?? []
    const route = app.route(basePath + path.replaceAll(/\{(\w+)\}/g, ':$1'))
    for (const endpoint of endpoints)
      route[endpoint.definition.method]((request, response) => {
        serve(options, endpoint, request, response).then(
          (answer) => send(response, answer),
          (error: unknown) => sendError(options.services, request, response, error),
        )
      })
    const methods = endpoints.map((endpoint) => endpoint.definition.method.toUpperCase())
    const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    route.all(methodRefuser(options.services)(allow))
  }
}

/** The last two handlers: what no route took, and what went wrong before a route could. */
export function mountRest(app: Express, services: Services): void {
  app.use((request: Request, response: Response) => {
    sendError(services, request, response, new Refusal('NOT_FOUND', 'There is no such path.'))
  })
  app.use(((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const malformed = error instanceof URIError || (error instanceof Error && 'status' in error && error.status === 400)
    sendError(services, request, response, malformed ? new Refusal('NOT_FOUND', 'There is no such path.') : error)
  }) satisfies ErrorRequestHandler)
}
