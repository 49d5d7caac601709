/** Sends responses and problems. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'

import type { Logger } from '@keyward/runtime'

import { type ApiError, toApiError, toProblem } from './problem.ts'
import { RejectionPacer } from './rejection-pacer.ts'
import { UnreadBodies } from './unread-body.ts'

/** A response body that is too long to be in memory at once. Its chunks are sent as soon as they are produced. */
export class Streamed {
  readonly chunks: AsyncIterable<string>
  /** Called once, when the response has ended or the caller has disconnected. */
  readonly close: () => void

  constructor(chunks: AsyncIterable<string>, close: () => void) {
    this.chunks = chunks
    this.close = close
  }
}

/** A response, whose body is a text or a stream. */
export interface WireResponse {
  status: number
  headers: Record<string, string>
  /** The text of the body, or '' when there is none. */
  body: string
  /** The stream to send instead of `body`. */
  stream?: Streamed
}

/** Returns the response for an error: a problem of RFC 9457. */
export function problemResponse(error: ApiError, path: string, requestId: string): WireResponse {
  return {
    status: error.status,
    headers: { 'content-type': 'application/problem+json; charset=utf-8', ...error.options.headers },
    body: JSON.stringify(toProblem(error, path, requestId)),
  }
}

export function setHeaders(response: ServerResponse, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

/** Returns the id that the first handler has given to the request. */
export function requestIdOf(response: ServerResponse): string {
  return String(response.getHeader('x-request-id'))
}

/** The share of callers without a valid credential. All of them are paced together. */
export const NO_SHARE = ''

/** The limits of a streamed response in milliseconds. A response that exceeds one ends incompletely, so that its place becomes free. */
const STREAM_LIMITS = {
  /** The time from the first byte to the last. */
  totalMs: 15 * 60_000,
  /** The time in which the caller reads nothing. */
  idleMs: 30_000,
}

/** Sends the responses of one server. Discarded bodies and rejections are counted for all requests together. */
export class Responder {
  readonly #log: Pick<Logger, 'error'>
  readonly #streamLimits: typeof STREAM_LIMITS
  readonly #unreadBodies = new UnreadBodies()
  readonly #rejections = new RejectionPacer()

  constructor(log: Pick<Logger, 'error'>, streamLimits = STREAM_LIMITS) {
    this.#log = log
    this.#streamLimits = streamLimits
  }

  send(response: ServerResponse, { status, headers, body, stream }: WireResponse): void {
    // The caller may have gone while the response was prepared. `close` is emitted only once.
    if (response.destroyed) return stream?.close()
    if (stream) response.once('close', stream.close)
    if (response.headersSent) return
    response.statusCode = status
    setHeaders(response, headers)
    response.setHeader('cache-control', 'no-store')
    if (stream && response.req.method !== 'HEAD') {
      // An error closes the connection, so that the caller can detect the incomplete body.
      const { totalMs, idleMs } = this.#streamLimits
      response.setTimeout(idleMs, () => response.destroy())
      const timer = setTimeout(() => response.destroy(), totalMs)
      pipeline(Readable.from(stream.chunks), response, () => clearTimeout(timer))
      return
    }
    this.#unreadBodies.end(response.req, response, body === '' ? undefined : body)
  }

  /** Sends a problem. `share` is the share of the caller, by which rejections are paced. */
  sendError(
    request: IncomingMessage & { path: string },
    response: ServerResponse,
    error: unknown,
    share: string,
  ): void {
    const { apiError, unexpected } = toApiError(error)
    const id = requestIdOf(response)
    if (unexpected) this.#log.error({ err: error, requestId: id, method: request.method }, 'request failed')
    const problem = problemResponse(apiError, request.path, id)
    const delayMs = this.#rejections.delayMs(share)
    if (delayMs === 0) return this.send(response, problem)
    const timer = setTimeout(() => this.send(response, problem), delayMs)
    response.once('close', () => clearTimeout(timer))
  }
}
