/**
 * Runs the HTTP server of one worker (docs/api.md#validation-api). Every request is processed in the same steps, even a request
 * for an unknown path. The server reads the headers in one pass, then the body up to its last chunk. Then it runs the endpoint.
 */

import { App, type AppDescriptor, type HttpRequest, type HttpResponse } from '@keyward/uwebsockets'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import { Cors } from './cors.ts'
import { Deadlines } from './deadlines.ts'
import { type Endpoint, Exchange, type ExchangeHost, MAX_BODY_BYTES, MAX_DISCARDED_BYTES } from './exchange.ts'
import { RequestHeaders } from './request-headers.ts'
import { NO_CONTENT, type Shape } from './responses.ts'

const DEADLINE_MS = 2_000

export interface Route extends Endpoint {
  method: 'GET' | 'POST'
}

/** A route whose requests consist of headers, so that their bodies and the encoding of their bodies are ignored. */
export interface HeaderRoute {
  path: string
  shape: Shape
  /** Reads the headers of a request, and returns the endpoint for this request. */
  read(request: HttpRequest): Endpoint['run']
}

export interface ServerOptions {
  routes: readonly Route[]
  headerRoutes: readonly HeaderRoute[]
  control: Control
  counters: Counters
  corsOrigins: readonly string[]
  /** The lower-case names of the headers that contain the client's address and country. */
  forwardedHeaders: readonly string[]
  isOnUnixSocket: boolean
  /** Receives the errors that endpoints throw. The caller receives a 503. */
  onError(error: unknown): void
}

export class Server implements ExchangeHost {
  readonly control: Control
  readonly counters: Counters
  readonly isOnUnixSocket: boolean
  readonly deadlines = new Deadlines(DEADLINE_MS)
  readonly #app = App()
  readonly #cors: Cors
  readonly #headers: RequestHeaders
  readonly #options: ServerOptions

  constructor(options: ServerOptions) {
    this.#options = options
    this.control = options.control
    this.counters = options.counters
    this.isOnUnixSocket = options.isOnUnixSocket
    this.#cors = new Cors(options.corsOrigins)
    this.#headers = new RequestHeaders(options.forwardedHeaders, this.#cors.isOn)
    for (const route of options.routes) this.#register(route)
    for (const route of options.headerRoutes) this.#registerHeaders(route)
    this.#app.any('/*', (response, request) =>
      this.#open(notFound(shapeOf(request.getUrl())), response, request, '', isHead(request)),
    )
  }

  /** The descriptor by which the main thread passes connections to this server. */
  get descriptor(): AppDescriptor {
    return this.#app.getDescriptor()
  }

  /** Closes every connection at once. An open connection would abort the process when the thread ends. */
  close(): void {
    this.deadlines.stop()
    this.#app.close()
  }

  failed(error: unknown): void {
    this.counters.count('failed')
    this.#options.onError(error)
  }

  writeCors(response: HttpResponse, exchange: Exchange): void {
    this.#cors.write(response, exchange.allowOrigin)
    if (exchange.preflightMethods !== '') this.#cors.writePreflight(response, exchange.preflightMethods)
  }

  #register(route: Route): void {
    const { path } = route
    const methods = route.method === 'GET' ? 'GET, HEAD' : 'POST'
    const serve = (response: HttpResponse, request: HttpRequest): void => this.#open(route, response, request)
    if (route.method === 'POST') this.#app.post(path, serve)
    else this.#app.get(path, serve).head(path, (response, request) => this.#open(route, response, request, '', true))
    this.#registerOthers(path, route.shape, methods)
  }

  #registerHeaders(route: HeaderRoute): void {
    const { path, shape } = route
    const serve = (response: HttpResponse, request: HttpRequest): void => {
      const endpoint = { shape, path, maxBodyBytes: MAX_BODY_BYTES, largeBodies: null, run: route.read(request) }
      this.#open(endpoint, response, request, '', isHead(request))
    }
    this.#app.get(path, serve).head(path, serve).post(path, serve)
    this.#registerOthers(path, shape, 'GET, HEAD, POST')
  }

  /** Registers the preflight of a path, and the response to all other methods. */
  #registerOthers(path: string, shape: Shape, methods: string): void {
    const allow = this.#cors.isOn ? `${methods}, OPTIONS` : methods
    if (this.#cors.isOn)
      this.#app.options(path, (response, request) => this.#open(preflight(shape, methods), response, request, allow))
    this.#app.any(path, (response, request) =>
      this.#open(methodNotAllowed(shape), response, request, allow, isHead(request)),
    )
  }

  /** Opens the exchange of a request. The method runs inside a callback of the native server, so it must not throw. */
  #open(endpoint: Endpoint, response: HttpResponse, request: HttpRequest, allow = '', isHeadRequest = false): void {
    const headers = this.#headers
    headers.read(request)
    const served = headers.isCompressed && endpoint.shape !== 'gateway' ? compressed(endpoint) : endpoint
    const exchange = new Exchange(this, served, response, isHeadRequest)
    exchange.authorization = headers.authorization
    exchange.allow = allow
    // The parser detects the end of chunks unreliably, so the connection closes (docs/decisions/0018-chunked-bodies.md).
    exchange.isLast = headers.contentLength < 0 && (headers.isChunked || !mayLackBody(request))
    if (headers.forwarded.length > 0) exchange.forwarded = headers.forwarded.slice()
    if (headers.origin !== '') exchange.allowOrigin = this.#cors.allows(headers.origin)
    if (!headers.isWellFramed) exchange.failUnread('BAD_REQUEST')
    else if (headers.contentLength > MAX_DISCARDED_BYTES) exchange.failUnread('PAYLOAD_TOO_LARGE')
    else exchange.readBody(headers.contentLength)
  }
}

/**
 * Returns whether the connection may stay open after a request of this method without a content-length. After any other method,
 * the connection closes, because the parser drops a header without a name and all headers after it, including a content-length.
 * The body would then be parsed as the next request.
 */
function mayLackBody(request: HttpRequest): boolean {
  return ['get', 'head', 'options'].includes(request.getMethod())
}

function isHead(request: HttpRequest): boolean {
  return request.getMethod() === 'head'
}

function shapeOf(path: string): Shape {
  return path.startsWith('/api/v2/') ? 'v2' : 'v1'
}

/** Returns an endpoint that does not read the body. */
function unread(shape: Shape, run: (exchange: Exchange) => void): Endpoint {
  return { path: '', shape, maxBodyBytes: MAX_BODY_BYTES, largeBodies: null, run }
}

function notFound(shape: Shape): Endpoint {
  return unread(shape, (exchange) => exchange.fail('NOT_FOUND'))
}

function methodNotAllowed(shape: Shape): Endpoint {
  return unread(shape, (exchange) => exchange.fail('METHOD_NOT_ALLOWED'))
}

function compressed(endpoint: Endpoint): Endpoint {
  return { ...endpoint, run: (exchange) => exchange.fail('UNSUPPORTED_MEDIA_TYPE') }
}

function preflight(shape: Shape, methods: string): Endpoint {
  return unread(shape, (exchange) => {
    exchange.preflightMethods = methods
    exchange.send(NO_CONTENT)
  })
}
