/**
 * A reverse proxy that serves validator and management at one base address on this machine, like the balancer in
 * production. It overwrites `x-forwarded-for` with the address of its peer. It writes no log.
 */

import { Agent, createServer, type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProxyServer, type ProxyServer } from 'httpxy'

import { listenOn } from '../shared/ports.ts'

/** The paths that the validator serves. Management serves all others. */
export const VALIDATION_PATHS: ReadonlySet<string> = new Set([
  '/api/v2/license/validate',
  '/api/v2/license/validate/batch',
  '/api/v1/validate',
  '/api/v1/activate',
  '/api/v1/deactivate',
  '/api/v1/public-key',
  '/api/v1/public-keys',
])

/** The idle timeout of callers' connections. It is longer than the idle timeout of common HTTP clients. */
const CLIENT_IDLE_MS = 65_000

/** The idle timeout of connections to the services. It is shorter than the services' own timeout, so that the gateway closes idle connections first. */
const UPSTREAM_IDLE_MS = 4_000

/** The time for which a stopping gateway still accepts requests. It closes each connection after its response. */
const DRAIN_MS = 300

/** The most bytes of a body for the validator, by path. */
const MAX_BODY_BYTES = 16 * 1024
const BATCH_PATH = '/api/v2/license/validate/batch'
const MAX_BATCH_BODY_BYTES = 128 * 1024

export interface Gateway {
  port: number
  close: () => Promise<void>
}

export interface Targets {
  validator: () => string
  management: () => string
}

/** Starts the gateway. `targets` returns the base addresses for each request. Rejects if the port is taken. */
export async function startGateway(port: number, targets: Targets): Promise<Gateway> {
  const agent = new Agent({ keepAlive: true, timeout: UPSTREAM_IDLE_MS })
  const proxy = createProxyServer({ agent, proxyTimeout: 30_000 })
  proxy.on('error', (_error, _request, response) => {
    if (response instanceof ServerResponse) sendUnavailable(response)
    else response?.destroy()
  })
  let isStopping = false
  const server = createServer({ keepAliveTimeout: CLIENT_IDLE_MS }, (request, response) => {
    if (isStopping) request.headers.connection = 'close' // The response gets the same header.
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
 * Forwards a request to the validator. A chunked body is buffered and sent with a content-length. The gateway rejects a
 * body over the validator's limit, because the validator may close the connection before it has read the whole body.
 */
async function forwardWithLength(
  proxy: ProxyServer,
  request: IncomingMessage,
  response: ServerResponse,
  target: string,
): Promise<void> {
  const encoding = request.headers['transfer-encoding']
  const mostBytes = pathOf(request) === BATCH_PATH ? MAX_BATCH_BODY_BYTES : MAX_BODY_BYTES
  if (encoding === undefined) {
    if (Number(request.headers['content-length'] ?? 0) > mostBytes) return sendError(response, tooLarge(mostBytes))
    return proxy.web(request, response, { target })
  }
  if (encoding !== 'chunked') {
    response.setHeader('connection', 'close')
    return sendError(response, INVALID_HTTP)
  }
  const body = await readBody(request, mostBytes)
  if (body.length > mostBytes) {
    request.resume() // Discards the rest, so that the connection can be used again.
    return sendError(response, tooLarge(mostBytes))
  }
  delete request.headers['transfer-encoding']
  request.headers['content-length'] = String(body.length)
  return proxy.web(request, response, { target, buffer: Readable.from([body]) })
}

/** Reads the body. Stops after the chunk that exceeds the limit. */
async function readBody(request: IncomingMessage, mostBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk)
    chunks.push(bytes)
    length += bytes.length
    if (length > mostBytes) break
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
  detail: 'The service is temporarily unavailable.',
}
const INVALID_HTTP: GatewayError = { status: 400, code: 'BAD_REQUEST', detail: 'The request is not valid HTTP.' }
const SLOW: GatewayError = { status: 408, code: 'REQUEST_TIMEOUT', detail: 'The request did not arrive in time.' }
const LONG_HEADERS: GatewayError = { status: 431, code: 'BAD_REQUEST', detail: 'The headers are too large.' }

function tooLarge(mostBytes: number): GatewayError {
  return { status: 413, code: 'PAYLOAD_TOO_LARGE', detail: `The body is larger than ${mostBytes / 1024} KiB.` }
}

/** The responses to errors of Node's parser, by their code. Any other error is INVALID_HTTP. */
const PARSER_ERRORS: Record<string, GatewayError> = {
  HPE_HEADER_OVERFLOW: LONG_HEADERS,
  ERR_HTTP_REQUEST_TIMEOUT: SLOW,
}

/** Returns a problem body, with the `message` that clients of the validation API read. */
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
  /** The connections with an incomplete response. An error would become a part of this response. */
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
