/**
 * Gives the validator and the management service one base address on this machine, as a balancer does in production.
 * `x-forwarded-for` is always the caller's address as seen here, whatever the caller sent. Nothing is logged.
 */
import { Agent, createServer, type IncomingMessage, ServerResponse } from 'node:http'

import { createProxyServer } from 'httpxy'

import { listenOn } from './ports.ts'

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
  const server = createServer((request, response) => {
    request.headers['x-forwarded-for'] = request.socket.remoteAddress ?? ''
    const target = VALIDATION_PATHS.has(pathOf(request)) ? targets.validator() : targets.management()
    proxy.web(request, response, { target }).catch(() => unavailable(response))
  })
  return {
    port: await listenOn(server, port),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), 3_000).unref()
        agent.destroy()
      }),
  }
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
