/**
 * The admin port of a program: liveness, readiness, metrics, and endpoints that other programs of the installation call. It
 * belongs in the network of the operators and is never for callers.
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
  /** Handlers of POST requests by path. They authenticate their callers themselves. */
  posts?: Readonly<Record<string, PostHandler>>
}

export interface PostRequest {
  authorization: string | undefined
  /** The parsed JSON. Undefined when the body is not JSON. */
  body: unknown
}

/** Returns the status and the JSON body of the response. */
export type PostHandler = (request: PostRequest) => Promise<{ status: number; body: object }>

export interface AdminServer {
  port: number
  close(): Promise<void>
}

interface Reply {
  status: number
  type: string
  body: string
  allow?: string
}

interface Endpoint {
  methods: readonly string[]
  run: (request: IncomingMessage) => Reply | Promise<Reply>
}

const MAX_BODY_BYTES = 262_144

/** Starts the server. Rejects when the port is not available. */
export async function startAdminServer(options: AdminOptions): Promise<AdminServer> {
  const { registry } = options
  if (!registry.getSingleMetric('process_cpu_seconds_total')) collectDefaultMetrics({ register: registry })
  if (!registry.getSingleMetric('keyward_ready')) addReadyGauge(registry, options.isReady)
  const endpoints: Record<string, Endpoint> = {
    '/livez': get(() => json(200, { live: true })),
    '/readyz': get(() => readiness(options.isReady)),
    '/metrics': get(async () => ({ status: 200, type: registry.contentType, body: await registry.metrics() })),
  }
  for (const [path, handler] of Object.entries(options.posts ?? {})) endpoints[path] = post(handler)
  const server = createServer((request, response) => {
    reply(endpoints, request)
      .catch(() => json(500, { error: 'The request failed.' }))
      .then((result) => send(request, response, result))
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

const get = (run: Endpoint['run']): Endpoint => ({ methods: ['GET', 'HEAD'], run })

const post = (handler: PostHandler): Endpoint => ({
  methods: ['POST'],
  async run(request) {
    const text = await readBody(request)
    if (text === null) return json(413, { error: `The body is larger than ${MAX_BODY_BYTES} bytes.` })
    const { status, body } = await handler({ authorization: request.headers.authorization, body: parseJson(text) })
    return json(status, body)
  },
})

/** Returns null when the body is too large. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue
    length += chunk.length
    if (length > MAX_BODY_BYTES) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    return undefined
  }
}

async function reply(endpoints: Record<string, Endpoint>, request: IncomingMessage): Promise<Reply> {
  const path = (request.url ?? '/').split('?', 1)[0] ?? '/'
  const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined
  if (!endpoint) return json(404, { error: `No such path. Available: ${Object.keys(endpoints).join(', ')}.` })
  const { methods } = endpoint
  if (methods.includes(request.method ?? '')) return endpoint.run(request)
  const allow = methods.join(', ')
  return { ...json(405, { error: `The method is not allowed. Allowed: ${allow}.` }), allow }
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

function send(request: IncomingMessage, response: ServerResponse, { status, type, body, allow }: Reply): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(allow === undefined ? {} : { allow }),
    // The rest of a body that is too large is not read.
    ...(status === 413 ? { connection: 'close' } : {}),
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
