/**
 * Forwards requests of the gateway to a service over pooled connections. A service may close a connection at the moment at
 * which the gateway sends a request on it. The request is then repeated once, on a new connection, if a repetition is safe.
 */

import { Agent, type IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

import { createProxyServer, type ProxyServer } from 'httpxy'

import { INVALID_HTTP, libraryError, sendError, sendUnavailable, SLOW, tooLarge } from './gateway-errors.ts'

/** The idle timeout of connections to the services. It is shorter than the services' own timeout, so that the gateway closes idle connections first. */
const UPSTREAM_IDLE_MS = 4_000

const RESPONSE_TIMEOUT_MS = 30_000

/** The time within which the whole body of a request for the validator must arrive. */
const BODY_TIMEOUT_MS = 10_000

export class Forwarder {
  readonly #pool = new Agent({ keepAlive: true, timeout: UPSTREAM_IDLE_MS })
  readonly #pooled = createProxyServer({ agent: this.#pool, proxyTimeout: RESPONSE_TIMEOUT_MS })
  /** Opens a new connection for each request. */
  readonly #fresh = createProxyServer({ agent: new Agent(), proxyTimeout: RESPONSE_TIMEOUT_MS })
  /** For the response object of each request that can be repeated, the function that repeats the request. */
  readonly #repeats = new WeakMap<ServerResponse, (service: ProxyServer) => Promise<void>>()
  /** The response objects of requests for the validator. */
  readonly #checks = new WeakSet<ServerResponse>()

  constructor() {
    this.#pooled.on('proxyReq', (sent, _request, response) => {
      if (!(response instanceof ServerResponse)) return
      if (!sent.reusedSocket) this.#repeats.delete(response)
      sent.once('timeout', () => this.#repeats.delete(response))
    })
    this.#pooled.on('error', (_error, _request, response) => {
      const repeat = response instanceof ServerResponse && this.#repeats.get(response)
      if (!repeat || response.destroyed) return fail(response)
      this.#repeats.delete(response)
      repeat(this.#fresh).catch(() => sendUnavailable(response))
    })
    this.#fresh.on('error', (_error, _request, response) => fail(response))
    for (const service of [this.#pooled, this.#fresh])
      service.on('proxyRes', (received, _request, response) => {
        if (!(response instanceof ServerResponse)) return
        this.#repeats.delete(response)
        if (this.#checks.has(response)) receiveFromValidator(received, response)
      })
  }

  /** Forwards a request to management. Repeats it only if it is a GET or HEAD without a body. */
  async toManagement(request: IncomingMessage, response: ServerResponse, target: string): Promise<void> {
    const hasBody = 'content-length' in request.headers || 'transfer-encoding' in request.headers
    const isRepeatable = !hasBody && ['GET', 'HEAD'].includes(request.method ?? '')
    const forward = (service: ProxyServer): Promise<void> =>
      service.web(request, response, isRepeatable ? { target, buffer: Readable.from([]) } : { target })
    if (isRepeatable) this.#repeats.set(response, forward)
    return forward(this.#pooled)
  }

  /**
   * Forwards a request to the validator after its whole body has arrived, with a content-length. Rejects a body over `mostBytes`,
   * because the validator may close the connection before it has read the whole body. A repeated check is safe: a machine that
   * took its slot the first time is known the second time.
   */
  async toValidator(
    request: IncomingMessage,
    response: ServerResponse,
    target: string,
    mostBytes: number,
  ): Promise<void> {
    const { headers } = request
    const encoding = headers['transfer-encoding']
    if (Number(headers['content-length'] ?? 0) > mostBytes) return sendError(response, tooLarge(mostBytes))
    if (encoding !== undefined && encoding !== 'chunked') {
      response.setHeader('connection', 'close')
      return sendError(response, INVALID_HTTP)
    }
    const body = await readBody(request, response, mostBytes)
    if (body.length > mostBytes) {
      request.resume() // Discards the rest, so that the connection can be used again.
      return sendError(response, tooLarge(mostBytes))
    }
    if (encoding !== undefined) headers['content-length'] = String(body.length)
    delete headers['transfer-encoding']
    delete headers.expect // The gateway has sent 100 Continue.
    const forward = (service: ProxyServer): Promise<void> =>
      service.web(request, response, { target, buffer: Readable.from([body]) })
    this.#checks.add(response)
    this.#repeats.set(response, forward)
    return forward(this.#pooled)
  }

  /** Closes the pooled connections to the services. */
  close(): void {
    this.#pool.destroy()
  }
}

function fail(response: ServerResponse | { destroy(): unknown } | undefined): void {
  if (response instanceof ServerResponse) sendUnavailable(response)
  else response?.destroy()
}

/**
 * Keeps the caller's connection open even if the validator closes its own. Replaces a non-JSON error response of the validator's HTTP
 * library.
 */
function receiveFromValidator(received: IncomingMessage, response: ServerResponse): void {
  delete received.headers.connection
  const { statusCode = 0, headers } = received
  if (statusCode < 400 || 'content-type' in headers) return
  received.resume()
  sendError(response, libraryError(statusCode))
}

/** Reads the body. Stops after the chunk that exceeds `mostBytes`. Sends a 408 and rejects if the body does not arrive in time. */
async function readBody(request: IncomingMessage, response: ServerResponse, mostBytes: number): Promise<Buffer> {
  const deadline = setTimeout(() => {
    response.setHeader('connection', 'close')
    sendError(response, SLOW)
  }, BODY_TIMEOUT_MS)
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      const bytes = Buffer.from(chunk)
      chunks.push(bytes)
      length += bytes.length
      if (length > mostBytes) break
    }
  } finally {
    clearTimeout(deadline)
  }
  return Buffer.concat(chunks)
}
