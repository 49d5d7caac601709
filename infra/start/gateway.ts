/**
 * A reverse proxy that gives validator and management one base address on this machine, as a balancer does in production.
 * It sets `x-forwarded-for` to the address of its peer, whatever the caller sent. It logs nothing.
 */

import { Agent, createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProxyServer, type ProxyServer } from 'httpxy'

import { listenOn } from '../shared/ports.ts'

/** The paths that the validator serves; management serves all others. */
export const VALIDATION_PATHS: ReadonlySet<string> = new Set([
  '/api/v2/license/validate',
  '/api/v1/validate',
  '/api/v1/activate',
  '/api/v1/deactivate',
  '/api/v1/public-key',
  '/api/v1/public-keys',
])

/** Longer than the pools of common HTTP clients keep an idle connection. */
const CLIENT_IDLE_MS = 65_000

/** Shorter than the services' own idle timeout, so that the gateway never reuses a connection as it closes. */
const UPSTREAM_IDLE_MS = 4_000

/** How long a stopping gateway still responds, closing each connection after its response, before it closes idle ones. */
const DRAIN_MS = 300

const VALIDATION_BODY_BYTES = 16 * 1024

export interface Gateway {
  port: number
  close: () => Promise<void>
}

export interface Targets {
  validator: () => string
  management: () => string
}

/** Starts the gateway. `targets` returns the base addresses and is called per request. Rejects when the port is taken. */
export async function startGateway(port: number, targets: Targets): Promise<Gateway> {
  const agent = new Agent({ keepAlive: true, timeout: UPSTREAM_IDLE_MS })
  const proxy = createProxyServer({ agent, proxyTimeout: 30_000 })
  proxy.on('error', (_error, _request, response) => {
    if (response instanceof ServerResponse) sendUnavailable(response)
    else response?.destroy()
  })
  let isStopping = false
  const server = createServer({ keepAliveTimeout: CLIENT_IDLE_MS }, (request, response) => {
    if (isStopping) request.headers.connection = 'close' // the response repeats it
    request.headers['x-forwarded-for'] = request.socket.remoteAddress ?? ''
    const forwarded = VALIDATION_PATHS.has(pathOf(request))
      ? forwardWithLength(proxy, request, response, targets.validator())
      : proxy.web(request, response, { target: targets.management() })
    forwarded.catch(() => sendUnavailable(response))
  })
  respondToInvalidHttp(server)
  return {
    port: await listenOn(server, port),
    close: async () => {
      isStopping = true
      await sleep(DRAIN_MS)
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), 3_000).unref()
      })
      agent.destroy()
    },
  }
}

/**
 * Forwards a request to the validator. A chunked body is buffered and sent with a content-length. A body over the
 * validator's limit is rejected here, because the validator may close the connection before it has read all of it.
 */
async function forwardWithLength(
  proxy: ProxyServer,
  request: IncomingMessage,
  response: ServerResponse,
  target: string,
): Promise<void> {
  const encoding = request.headers['transfer-encoding']
  if (encoding === undefined) {
    if (Number(request.headers['content-length'] ?? 0) > VALIDATION_BODY_BYTES) return sendError(response, TOO_LARGE)
    return proxy.web(request, response, { target })
  }
  if (encoding !== 'chunked') {
    response.setHeader('connection', 'close')
    return sendError(response, INVALID_HTTP)
  }
  const body = await readBody(request)
  if (body.length > VALIDATION_BODY_BYTES) {
    request.resume() // Discards the rest, so that the connection can be used again.
    return sendError(response, TOO_LARGE)
  }
  delete request.headers['transfer-encoding']
  request.headers['content-length'] = String(body.length)
  return proxy.web(request, response, { target, buffer: Readable.from([body]) })
}

/** Reads the body, but not far beyond the validator's limit. */
async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    length += bytes.length
    if (length > VALIDATION_BODY_BYTES) break
  }
  return Buffer.concat(chunks)
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/'
}

interface GatewayError {
  status: number
  code: string
  detail: string
}

const UNAVAILABLE: GatewayError = {
  status: 503,
  code: 'UNAVAILABLE',
  detail: 'The service behind this address does not respond. Try again shortly.',
}
const TOO_LARGE: GatewayError = {
  status: 413,
  code: 'PAYLOAD_TOO_LARGE',
  detail: 'The body is larger than 16 KiB.',
}
const INVALID_HTTP: GatewayError = { status: 400, code: 'BAD_REQUEST', detail: 'The request is not valid HTTP.' }
const SLOW: GatewayError = { status: 408, code: 'REQUEST_TIMEOUT', detail: 'The request did not arrive in time.' }
const LONG_HEADERS: GatewayError = { status: 431, code: 'BAD_REQUEST', detail: 'The headers are too large.' }

/** By the code of Node's error. Any other error is INVALID_HTTP. */
const PARSER_ERRORS: Record<string, GatewayError> = {
  HPE_HEADER_OVERFLOW: LONG_HEADERS,
  ERR_HTTP_REQUEST_TIMEOUT: SLOW,
}

/** Returns an error in the shape of management's errors, with the `message` that clients of the validation API read. */
function errorBody({ status, code, detail }: GatewayError): string {
  return JSON.stringify({
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    detail,
    message: detail,
    code,
  })
}

function sendError(response: ServerResponse, error: GatewayError): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(error.status, {
    'content-type': 'application/problem+json',
    ...(error.status === 503 ? { 'retry-after': '1' } : {}),
    'cache-control': 'no-store',
  })
  response.end(errorBody(error))
}

function sendUnavailable(response: ServerResponse): void {
  sendError(response, UNAVAILABLE)
}

/** Sends an error for requests that Node's parser rejects, and closes the connection. */
function respondToInvalidHttp(server: Server): void {
  /** The connections on which a response is not complete, so that an error would become a part of it. */
  const busy = new WeakSet<Duplex>()
  server.on('request', ({ socket }, response) => {
    busy.add(socket)
    response.once('close', () => busy.delete(socket))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || busy.has(socket)) return socket.destroy(error)
    const rejection = PARSER_ERRORS[error.code ?? ''] ?? INVALID_HTTP
    const body = errorBody(rejection)
    const head = [
      `HTTP/1.1 ${rejection.status} ${STATUS_CODES[rejection.status]}`,
      'content-type: application/problem+json',
      `content-length: ${Buffer.byteLength(body)}`,
      'cache-control: no-store',
      'connection: close',
    ]
    return socket.end([...head, '', body].join('\r\n'), () => socket.destroy())
  })
}
