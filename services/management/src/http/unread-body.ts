/**
 * Ends responses to requests whose body has not been read completely, such as those without a credential. Reading a body only to
 * discard it occupies the one thread of the process, about 2.5 ms for 1 MiB, and costs the sender nothing. So a limited number of bytes
 * a second is discarded, for all connections together. Beyond that, the response closes the connection, and the rest is never read.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'

/** A body of this size costs about as much as the request itself. It is always discarded. */
const SMALL_BYTES = 64 * 1024
const BYTES_PER_SECOND = 16 * 1024 * 1024
/** How long a client that still sends may take to read the response. Closing at once could lose it. */
const LINGER_MS = 500

export class UnreadBodies {
  readonly #bytesPerSecond: number
  #available: number
  #atMs = performance.now()

  constructor(bytesPerSecond: number = BYTES_PER_SECOND) {
    this.#bytesPerSecond = bytesPerSecond
    this.#available = bytesPerSecond
  }

  /** Sends the body of a response, which has its status and headers. */
  end(request: IncomingMessage, response: ServerResponse, body: Buffer | undefined): void {
    if (this.#mayDiscard(request)) {
      response.end(body)
      // Node discards a body of which nothing was read, but not the rest of another one.
      if (!request.complete) request.resume()
      return
    }
    request.pause()
    response.setHeader('connection', 'close')
    if (body) response.setHeader('content-length', body.length)
    response.flushHeaders()
    if (body && request.method !== 'HEAD') response.write(body)
    const timer = setTimeout(() => response.end(), LINGER_MS)
    response.once('close', () => clearTimeout(timer))
  }

  #mayDiscard(request: IncomingMessage): boolean {
    if (request.complete) return true
    const bytes = declaredBytes(request)
    if (bytes <= SMALL_BYTES) return true
    const nowMs = performance.now()
    const earned = ((nowMs - this.#atMs) / 1_000) * this.#bytesPerSecond
    this.#available = Math.min(this.#bytesPerSecond, this.#available + earned)
    this.#atMs = nowMs
    if (bytes > this.#available) return false
    this.#available -= bytes
    return true
  }
}

/** Returns the length of the body; Infinity for a chunked one. */
function declaredBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity
}

/** Whether a request has a body that its method gives no meaning to, and that is too large to be ignored. */
export function hasMeaninglessBody(request: IncomingMessage): boolean {
  return !['POST', 'PATCH', 'PUT'].includes(request.method ?? '') && declaredBytes(request) > SMALL_BYTES
}
