/**
 * Gives the validator and the management service one base address on this machine, as a balancer does in production.
 * `x-forwarded-for` is always the caller's address as seen here, whatever the caller sent. Nothing is logged.
 */
import { Agent, createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { createProxyServer, type ProxyServer } from 'httpxy'

import { listenOn } from '../shared/ports.ts'

export const VALIDATION_PATHS: ReadonlySet<string> = new Set([
  '/api/v2/license/validate',
  '/api/v1/validate',
  '/api/v1/activate',
  '/api/v1/deactivate',
  '/api/v1/public-key',
  '/api/v1/public-keys',
])

/** Below the time after which the services close an idle connection, so that none is used as it closes. */
const UPSTREAM_IDLE_MS = 4_000

/** How long a stopping gateway goes on answering, each answer closing its connection, before idle ones are cut. */
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

/** The targets are base addresses, asked for at each request. Rejects when the port cannot be had. */
export async function startGateway(port: number, targets: Targets): Promise<Gateway> {
  const agent = new Agent({ keepAlive: true, timeout: UPSTREAM_IDLE_MS })
  const proxy = createProxyServer({ agent, proxyTimeout: 30_000 })
  proxy.on('error', (_error, _request, response) => {
    if (response instanceof ServerResponse) unavailable(response)
    else response?.destroy()
  })
  let isStopping = false
  const server = createServer((request, response) => {
    if (isStopping) request.headers.connection = 'close' // which the answer repeats
    request.headers['x-forwarded-for'] = request.socket.remoteAddress ?? ''
    const passed = VALIDATION_PATHS.has(pathOf(request))
      ? passFramed(proxy, request, response, targets.validator())
      : proxy.web(request, response, { target: targets.management() })
    passed.catch(() => unavailable(response))
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

/** The validator takes a body only with its length. One that comes in chunks is gathered and sent on with it. */
async function passFramed(
  proxy: ProxyServer,
  request: IncomingMessage,
  response: ServerResponse,
  target: string,
): Promise<void> {
  if (request.headers['transfer-encoding'] === undefined) return proxy.web(request, response, { target })
  const body = await gather(request)
  delete request.headers['transfer-encoding']
  request.headers['content-length'] = String(body.length)
  return proxy.web(request, response, { target, buffer: Readable.from([body]) })
}

/** Stops when there is more than the validator takes: what there is then is refused by its length. */
async function gather(request: IncomingMessage): Promise<Buffer> {
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

/** A 503 in the shape of management's errors, with the `message` that the validation API's clients know. */
function unavailable(response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const detail = 'The service behind this address does not answer; try again shortly.'
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
