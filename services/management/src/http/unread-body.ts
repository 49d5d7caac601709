/**
 * Ends responses to requests whose body has not been read completely, such as those without a credential. Reading a body to discard it
 * occupies the single thread of the process for about 2.5 ms per MiB. A limited number of bytes a second is therefore discarded, for all
 * connections together. Beyond this limit, the connection closes after the response, and the remaining bytes are never read.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'

/** A body of up to this size costs about as much as the request itself, and is always discarded. */
const SMALL_BYTES = 64 * 1024
const BYTES_PER_SECOND = 16 * 1024 * 1024
/** The time that a client has to read the response while it still sends its body. An immediate close could lose the response. */
const LINGER_MS = 500

export class UnreadBodies {
  readonly #bytesPerSecond: number
  #available: number
  #atMs = performance.now()

  constructor(bytesPerSecond: number = BYTES_PER_SECOND) {
    this.#bytesPerSecond = bytesPerSecond
    this.#available = bytesPerSecond
  }

  /** Sends the body of a response whose status and headers are set. */
  end(request: IncomingMessage, response: ServerResponse, body: string | undefined): void {
    if (this.#mayDiscard(request)) {
      if (body && request.method === 'HEAD') response.setHeader('content-length', Buffer.byteLength(body))
      response.end(body)
      // Node discards a body that was not read at all, but not the unread bytes of a partly read body.
      if (!request.complete) request.resume()
      return
    }
    request.pause()
    response.setHeader('connection', 'close')
    if (body) response.setHeader('content-length', Buffer.byteLength(body))
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

/** Returns the declared length of the body, or Infinity for a chunked body. */
function declaredBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity
}

/** Returns whether a request has a body that is too large to be ignored, although its method takes none. */
export function hasMeaninglessBody(request: IncomingMessage): boolean {
  return !['POST', 'PATCH', 'PUT'].includes(request.method ?? '') && declaredBytes(request) > SMALL_BYTES
}
