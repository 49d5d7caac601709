/**
 * The admin port of a program: liveness, readiness and metrics. It belongs in the network of the operators and is never for
 * callers. It serves GET and HEAD only.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client'

export interface Readiness {
  ready: boolean
  /** Why it is not ready, one short sentence each; empty when it is ready. */
  reasons: string[]
}

export interface AdminOptions {
  host?: string
  /** 0 lets the system choose. */
  port: number
  isReady: () => Readiness
  /** The server adds `keyward_ready` and Node's own metrics: memory, event-loop delay, garbage collection. */
  registry: Registry
}

export interface AdminServer {
  port: number
  close(): Promise<void>
}

interface Reply {
  status: number
  type: string
  body: string
}

type Endpoint = () => Reply | Promise<Reply>

/** Starts the server. Rejects when the port is not available. */
export async function startAdminServer(options: AdminOptions): Promise<AdminServer> {
  const { registry } = options
  if (!registry.getSingleMetric('process_cpu_seconds_total')) collectDefaultMetrics({ register: registry })
  if (!registry.getSingleMetric('keyward_ready')) addReadyGauge(registry, options.isReady)
  const endpoints: Record<string, Endpoint> = {
    '/livez': () => json(200, { live: true }),
    '/readyz': () => readiness(options.isReady),
    '/metrics': async () => ({ status: 200, type: registry.contentType, body: await registry.metrics() }),
  }
  const server = createServer((request, response) => {
    reply(endpoints, request)
      .catch(() => json(500, { error: 'The metrics could not be collected.' }))
      .then(({ status, type, body }) => send(request, response, status, type, body))
      .catch(() => response.destroy())
  })
  server.requestTimeout = 10_000
  await listen(server, options.port, options.host ?? '127.0.0.1')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : options.port,
    close: () => close(server),
  }
}

async function reply(endpoints: Record<string, Endpoint>, request: IncomingMessage): Promise<Reply> {
  const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
  const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined
  if (!endpoint) return json(404, { error: `No such path. Available: ${Object.keys(endpoints).join(', ')}.` })
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return json(405, { error: 'The method is not allowed. Allowed: GET, HEAD.' })
  return endpoint()
}

function readiness(isReady: () => Readiness): Reply {
  const state = stateOf(isReady)
  return json(state.ready ? 200 : 503, { ready: state.ready, reasons: state.reasons })
}

function stateOf(isReady: () => Readiness): Readiness {
  try {
    return isReady()
  } catch {
    return { ready: false, reasons: ['The state could not be determined.'] }
  }
}

/** The state of `/readyz` as a metric, for alerts. */
function addReadyGauge(registry: Registry, isReady: () => Readiness): void {
  const gauge: Gauge = new Gauge({
    name: 'keyward_ready',
    help: 'Whether the program is ready: 1 or 0.',
    registers: [registry],
    collect: () => gauge.set(stateOf(isReady).ready ? 1 : 0),
  })
}

function json(status: number, value: object): Reply {
  return { status, type: 'application/json', body: JSON.stringify(value) }
}

function send(request: IncomingMessage, response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
