/**
 * Serves the admin port of a program: liveness, readiness, metrics, and endpoints for other programs of the installation. The
 * admin port belongs in the network of the operators. Callers of the API must not be able to reach it.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client'

export interface Readiness {
  ready: boolean
  /** The reasons why the program is not ready, one short sentence each. The list is empty when the program is ready. */
  reasons: string[]
  /** Conditions that need the attention of an operator, although requests may be sent to the program. Default: none. */
  warnings?: string[]
}

export interface AdminOptions {
  host?: string
  /** The TCP port. With 0, the system chooses a free port. */
  port: number
  isReady: () => Readiness
  /** The version of the program, in `/readyz` and in the metric `keyward_build_info`. */
  version: string
  /** The metrics of the program. The server adds `keyward_ready`, `keyward_build_info` and the default metrics of Node.js. */
  registry: Registry
  /** The handlers of POST requests by path. Each handler authenticates its callers. */
  posts?: Readonly<Record<string, PostHandler>>
}

export interface PostRequest {
  authorization: string | undefined
  /** The parsed JSON, or undefined when the body is not JSON. */
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

/** Starts the server. Rejects when it cannot listen on the port. */
export async function startAdminServer(options: AdminOptions): Promise<AdminServer> {
  const { registry } = options
  if (!registry.getSingleMetric('process_cpu_seconds_total')) collectDefaultMetrics({ register: registry })
  if (!registry.getSingleMetric('keyward_ready')) {
    addReadyGauge(registry, options.isReady)
    addBuildInfo(registry, options.version)
  }
  const endpoints: Record<string, Endpoint> = {
    '/livez': get(() => json(200, { live: true })),
    '/readyz': get(() => readiness(options)),
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

/** Returns the body as text, or null when it has more than `MAX_BODY_BYTES`. */
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
  if (!endpoint)
    return json(404, { error: `The path does not exist. Available: ${Object.keys(endpoints).join(', ')}.` })
  const { methods } = endpoint
  if (methods.includes(request.method ?? '')) return endpoint.run(request)
  const allow = methods.join(', ')
  return { ...json(405, { error: `Method ${request.method} is not allowed here. Allowed: ${allow}.` }), allow }
}

function readiness({ isReady, version }: AdminOptions): Reply {
  const { ready, reasons, warnings = [] } = stateOf(isReady)
  return json(ready ? 200 : 503, { ready, reasons, ...(warnings.length > 0 && { warnings }), version })
}

function stateOf(isReady: () => Readiness): Readiness {
  try {
    return isReady()
  } catch {
    return { ready: false, reasons: ['The readiness could not be determined.'] }
  }
}

/** Adds a metric with the readiness that `/readyz` returns, for alerts. */
function addReadyGauge(registry: Registry, isReady: () => Readiness): void {
  const gauge: Gauge = new Gauge({
    name: 'keyward_ready',
    help: '1 when the program is ready, otherwise 0.',
    registers: [registry],
    collect: () => gauge.set(stateOf(isReady).ready ? 1 : 0),
  })
}

/** Adds a metric that is always 1. Its labels let dashboards and alerts compare the versions of the running processes. */
function addBuildInfo(registry: Registry, version: string): void {
  const gauge = new Gauge({
    name: 'keyward_build_info',
    help: 'Always 1. The labels are the versions of Keyward and of Node.js.',
    labelNames: ['version', 'node'],
    registers: [registry],
  })
  gauge.set({ version, node: process.versions.node }, 1)
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
    // The rest of a body that is too large is not read, so the connection must close.
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
