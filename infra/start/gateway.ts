/**
 * A reverse proxy that gives validator and management one base address on this machine, as a balancer does in production.
 * It sets `x-forwarded-for` to the address of its peer, whatever the caller sent. It logs nothing.
 */

import { Agent, createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
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
  const server = createServer((request, response) => {
    if (isStopping) request.headers.connection = 'close' // the response repeats it
    request.headers['x-forwarded-for'] = request.socket.remoteAddress ?? ''
    const forwarded = VALIDATION_PATHS.has(pathOf(request))
      ? forwardWithLength(proxy, request, response, targets.validator())
      : proxy.web(request, response, { target: targets.management() })
    forwarded.catch(() => sendUnavailable(response))
  })
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

/** Forwards a request to the validator. A chunked body is buffered and sent with a content-length. */
async function forwardWithLength(
  proxy: ProxyServer,
  request: IncomingMessage,
  response: ServerResponse,
  target: string,
): Promise<void> {
  if (request.headers['transfer-encoding'] === undefined) return proxy.web(request, response, { target })
  const body = await readBody(request)
  delete request.headers['transfer-encoding']
  request.headers['content-length'] = String(body.length)
  return proxy.web(request, response, { target, buffer: Readable.from([body]) })
}

/** Reads the body, but not far beyond the validator's limit: the validator rejects a longer body by its length. */
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

/** Sends a 503 in the shape of management's errors, with the `message` that clients of the validation API read. */
function sendUnavailable(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const detail = 'The service behind this address does not respond. Try again shortly.'
  const problem = {
    type: 'about:blank',
    title: 'Service Unavailable',
    status: 503,
    detail,
    message: detail,
    code: 'UNAVAILABLE',
  }
  response.writeHead(503, {
    'content-type': 'application/problem+json',
    'retry-after': '1',
    'cache-control': 'no-store',
  })
  response.end(JSON.stringify(problem))
}
