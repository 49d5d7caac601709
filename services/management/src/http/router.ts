/**
 * Mounts the endpoint definitions as Express routes. Each path has one route, which returns 405 with `Allow` for other methods. Every error
 * becomes a problem. A POST to a path without parameters is served without Express (`literalPosts`). A request is processed in this order:
 * credential, rate limits, permission, body, idempotency key, schema, handler.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'

import type { ErrorRequestHandler, Express, NextFunction, Request, RequestHandler } from 'express'

import type { Admission, Admitted } from './admission.ts'
import { authorize, type Caller } from './authentication.ts'
import { readBody, type RequestBody } from './body.ts'
import type { Dependencies } from './dependencies.ts'
import {
  acceptsIdempotencyKey,
  type Access,
  BASE_PATH,
  type Endpoint,
  MAX_BODY_BYTES,
  type RequestOrigin,
} from './endpoint.ts'
import { shareOf } from './gates.ts'
import { idempotentRequest, type WireResponse } from './idempotency.ts'
import { ApiError, toApiError } from './problem.ts'
import { parsePrefer } from './propagation.ts'
import { RejectionPacer } from './rejection-pacer.ts'
import { sessionSecret } from './session-cookie.ts'
import { requireOrigin, siteOf } from './site.ts'
import { handleRequest, problemResponse } from './transaction.ts'
import { hasMeaninglessBody, UnreadBodies } from './unread-body.ts'

export interface RouterOptions {
  dependencies: Dependencies
  endpoints: readonly Endpoint[]
  admission: Admission
  /** Called for every authenticated request, except those with the operator token. Receives the id of the credential or session. */
  onCredentialUse: (credentialId: string) => void
}

/** A request with the properties that Express adds, or `literalPosts`. */
type RoutedRequest = IncomingMessage & Pick<Request, 'path' | 'params' | 'query'>

const unreadBodies = new UnreadBodies()
const rejections = new RejectionPacer()
/** The owner of all requests without a valid credential. */
const STRANGER = ''
/** The name of the share of connections that each admitted request uses. */
const owners = new WeakMap<IncomingMessage, string>()

function setHeaders(response: ServerResponse, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

function send(response: ServerResponse, { status, headers, body, stream }: WireResponse): void {
  if (stream) response.once('close', stream.close)
  if (response.headersSent) return
  response.statusCode = status
  setHeaders(response, headers)
  response.setHeader('cache-control', 'no-store')
  if (stream && response.req.method !== 'HEAD') {
    // An error closes the connection, so that the caller can detect the incomplete body.
    pipeline(Readable.from(stream.chunks), response, () => undefined)
    return
  }
  unreadBodies.end(response.req, response, body === '' ? undefined : body)
}

function requestId(response: ServerResponse): string {
  return String(response.getHeader('x-request-id'))
}

function sendError(dependencies: Dependencies, request: RoutedRequest, response: ServerResponse, error: unknown): void {
  const { apiError, unexpected } = toApiError(error)
  const id = requestId(response)
  if (unexpected) dependencies.log.error({ err: error, requestId: id, method: request.method }, 'request failed')
  const problem = problemResponse(apiError, request.path, id)
  const delayMs = rejections.delayMs(owners.get(request) ?? STRANGER)
  if (delayMs === 0) return send(response, problem)
  const timer = setTimeout(() => send(response, problem), delayMs)
  response.once('close', () => clearTimeout(timer))
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value.join(',') : value
}

/** Returns a function that determines the caller's address and country. */
function originOf({ resolver }: Dependencies, request: RoutedRequest): () => RequestOrigin {
  let origin: RequestOrigin | undefined
  return () => (origin ??= resolver.resolveText(request.socket.remoteAddress, (name) => headerOf(request, name) ?? ''))
}

/**
 * Returns the caller of a request. A page of another origin can make a browser sign in. If the page belongs to the same domain, it can also
 * make the browser send a session cookie. A request that signs in, or changes data with a session, must therefore come from a page of this
 * site (site.ts).
 */
async function admit(
  admission: Admission,
  access: Access,
  request: RoutedRequest,
  ip: string | null,
): Promise<Admitted> {
  const { authorization, cookie, origin, host } = request.headers
  if (access.kind === 'anyone') {
    if (origin !== undefined) requireOrigin(siteOf(host), origin)
    return admission.admitStranger(ip)
  }
  const admitted = await admission.admit({ authorization, session: sessionSecret(cookie) }, ip)
  if (admitted.caller.session && request.method !== 'GET' && request.method !== 'HEAD')
    requireOrigin(siteOf(host), origin)
  return admitted
}

async function serve(
  options: RouterOptions,
  endpoint: Endpoint,
  request: RoutedRequest,
  response: ServerResponse,
): Promise<WireResponse> {
  const { dependencies, admission } = options
  const { access } = endpoint
  const origin = originOf(dependencies, request)
  const { caller, headers } = await admit(admission, access, request, origin().ip)
  owners.set(request, shareOf(caller))
  setHeaders(response, headers)
  if (caller.kind === 'vendor' || caller.kind === 'apiKey' || caller.session) options.onCredentialUse(caller.owner)
  if (access.kind !== 'anyone') authorize(access, caller)
  const leave = endpoint.definition.rows ? await dependencies.gates.imports.enter(shareOf(caller)) : undefined
  try {
    const served = await serveCaller(dependencies, endpoint, { caller, origin, id: requestId(response) }, request)
    admission.countResponse(caller, served.body)
    return served
  } catch (error) {
    if (access.kind === 'anyone') admission.noteFailure(error, origin().ip)
    throw error
  } finally {
    leave?.()
  }
}

async function bodyOf(
  { definition }: Endpoint,
  request: RoutedRequest,
  isHashed: boolean,
): Promise<RequestBody | null> {
  if (definition.method === 'get' || definition.method === 'delete') return null
  const { maxBodyBytes: maxBytes = MAX_BODY_BYTES, rows } = definition
  return readBody(request, { maxBytes, rows: rows?.splitter, isHashed })
}

/** Serves an authenticated and authorized request. */
async function serveCaller(
  dependencies: Dependencies,
  endpoint: Endpoint,
  { caller, origin, id }: { caller: Caller; origin: () => RequestOrigin; id: string },
  request: RoutedRequest,
): Promise<WireResponse> {
  const { definition } = endpoint
  const key = acceptsIdempotencyKey(endpoint) ? headerOf(request, 'idempotency-key') : undefined
  const body = await bodyOf(endpoint, request, key !== undefined)
  const { value, split, hash } = body ?? { value: undefined, split: null, hash: null }
  return handleRequest(dependencies, {
    endpoint,
    prepare: () => endpoint.prepare({ params: request.params, query: request.query, body: { value, split } }),
    caller,
    origin,
    site: () => siteOf(request.headers.host),
    browser: { cookie: request.headers.cookie, origin: request.headers.origin },
    path: request.path,
    requestId: id,
    idempotent: idempotentRequest(caller, key, {
      method: request.method ?? '',
      path: request.path,
      bodyHash: hash ?? Buffer.alloc(0),
    }),
    waitSeconds: definition.propagates === true ? parsePrefer(headerOf(request, 'prefer')) : null,
  })
}

/** Rejects requests that have a large body although their method allows none. */
export function rejectMeaninglessBodies(dependencies: Dependencies): RequestHandler {
  return (request, response, next) => {
    if (!hasMeaninglessBody(request)) return next()
    const detail = `Method ${request.method} takes no body. Send the request without a body.`
    return sendError(dependencies, request, response, new ApiError('PAYLOAD_TOO_LARGE', detail))
  }
}

/** Returns a function that creates handlers, which send 405. `allow` is the value of the `Allow` header. */
export function methodNotAllowed(dependencies: Dependencies): (allow: string) => RequestHandler {
  return (allow) => (request, response) => {
    const detail = `Method ${request.method} is not allowed here. Allowed: ${allow}.`
    sendError(dependencies, request, response, new ApiError('METHOD_NOT_ALLOWED', detail, { headers: { allow } }))
  }
}

function respond(options: RouterOptions, endpoint: Endpoint, request: RoutedRequest, response: ServerResponse): void {
  serve(options, endpoint, request, response).then(
    (wireResponse) => send(response, wireResponse),
    (error: unknown) => sendError(options.dependencies, request, response, error),
  )
}

/**
 * Returns handlers of POST requests by their exact URLs. They replace Express for paths without parameters. Express takes longer, because
 * it compares a path with the patterns of all routes and changes the prototypes of request and response.
 */
export function literalPosts(
  options: RouterOptions,
): ReadonlyMap<string, (request: IncomingMessage, response: ServerResponse) => void> {
  const endpoints = options.endpoints.filter(
    ({ definition }) => definition.method === 'post' && !definition.path.includes('{'),
  )
  return new Map(
    endpoints.map((endpoint) => {
      const path = BASE_PATH + endpoint.definition.path
      const route = { path }
      const handle = (request: IncomingMessage, response: ServerResponse) =>
        respond(options, endpoint, Object.assign(request, { path, route, params: {}, query: {} }), response)
      return [path, handle]
    }),
  )
}

/** Sorts `/licenses/file` before `/licenses/{id}`, so that the literal path matches first. */
function literalFirst(a: string, b: string): number {
  const rank = (path: string) => path.replaceAll('{', '~')
  return rank(a) < rank(b) ? -1 : Number(rank(a) > rank(b))
}

export function mountEndpoints(app: Express, options: RouterOptions): void {
  const byPath = Map.groupBy(options.endpoints, (endpoint) => endpoint.definition.path)
  for (const path of [...byPath.keys()].toSorted(literalFirst)) {
    const endpoints = byPath.get(path) ?? []
    const route = app.route(BASE_PATH + path.replaceAll(/\{(\w+)\}/g, ':$1'))
    for (const endpoint of endpoints)
      route[endpoint.definition.method]((request, response) => respond(options, endpoint, request, response))
    const methods = endpoints.map((endpoint) => endpoint.definition.method.toUpperCase())
    const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
    route.all(methodNotAllowed(options.dependencies)(allow))
  }
}

function unknownPath(request: Request): ApiError {
  return new ApiError('NOT_FOUND', `The path ${request.path} does not exist. All paths are listed at /docs.`)
}

/** Mounts the last two handlers, one for paths without a route and one for errors that occur before a route. */
export function mountFallbacks(app: Express, dependencies: Dependencies): void {
  app.use((request: Request, response: ServerResponse) => {
    sendError(dependencies, request, response, unknownPath(request))
  })
  app.use(((error: unknown, request: Request, response: ServerResponse, _next: NextFunction) => {
    const isMalformedPath =
      error instanceof URIError || (error instanceof Error && 'status' in error && error.status === 400)
    sendError(dependencies, request, response, isMalformedPath ? unknownPath(request) : error)
  }) satisfies ErrorRequestHandler)
}
