/**
 * Represents one request and its response. An exchange ends once: by a response, by an abort or at its deadline. After that
 * its methods have no effect, because the native response must not be used any more.
 *
 *   reading ──end of the body──► running ──response──► done
 *      │                            └──wait──► waiting ──response──► done
 *      └──abort, deadline, body too large──► done
 *
 * An abort ends the exchange in every state. While the exchange waits, nothing is read from the connection. A disconnect of the
 * client is then detected only when the response is sent.
 */

import { endHeadAndClose, type HttpResponse } from '@keyward/uwebsockets'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import { type Deadlines, type Expiring, NOT_LISTED } from './deadlines.ts'
import type { LargeBodies } from './large-bodies.ts'
import { ERROR_RESPONSES, type ErrorCode, errorResponse, type PreparedResponse, type Shape } from './responses.ts'

export const MAX_BODY_BYTES = 16 * 1024

/**
 * The maximum length of a body that is read to its end before the response with status 413. A client that is still sending when the
 * connection closes may lose the response. After this length the connection closes in any case.
 */
export const MAX_DISCARDED_BYTES = 2 * 1024 * 1024

export interface Endpoint {
  /** The path of the route. */
  path: string
  /** The shape of error responses. */
  shape: Shape
  /** The maximum length of a body in bytes. */
  maxBodyBytes: number
  /** Admits bodies over MAX_BODY_BYTES that arrive in several pieces. The field is null when the endpoint allows no such bodies. */
  largeBodies: LargeBodies | null
  /**
   * Processes the whole body, and sends a response through the exchange, now or later. The bytes are freed when `run` returns.
   */
  run(exchange: Exchange, body: Uint8Array): void
}

/** Signs the response of one exchange. */
export interface ResponseSigner {
  /**
   * Passes a copy of the response to `Exchange.sendSigned` at the end of this turn of the event loop, with its signature. A later response
   * may be written into the bytes of the body.
   */
  sign(response: PreparedResponse): void
}

/** The parts of the server that an exchange uses. */
export interface ExchangeHost {
  readonly control: Control
  readonly counters: Counters
  readonly deadlines: Deadlines
  /** Whether the requests arrive over the Unix socket, whose peer is a trusted balancer. */
  readonly isOnUnixSocket: boolean
  /** Reports an error that an endpoint threw. */
  failed(error: unknown): void
  writeCors(response: HttpResponse, exchange: Exchange): void
}

const NO_HEADERS: readonly string[] = []

/** One request in 64 is timed. Reading the clock for every request would reduce the throughput measurably. */
const TIMED_EVERY = 64
let opened = 0

export class Exchange implements Expiring {
  /** The time at which the headers arrived. It is null for most requests, because reading the clock is expensive. */
  readonly timed: { readonly fromMs: number } | null =
    ++opened % TIMED_EVERY === 0 ? { fromMs: performance.now() } : null
  /** The slot of this request in Deadlines. Only Deadlines uses it. */
  deadlineSlot = NOT_LISTED
  authorization = ''
  /** A copy of `RequestHeaders.forwarded`. */
  forwarded: readonly string[] = NO_HEADERS
  /** The value of `access-control-allow-origin`, or '' for no header. */
  allowOrigin = ''
  /** The value of `allow` in a 405 or a preflight response, or '' for no header. */
  allow = ''
  /** The value of `access-control-allow-methods` in a preflight response, or '' for no header. */
  preflightMethods = ''
  /** Whether the connection closes after the response. */
  isLast = false
  /** Returns the response for a deadline that passes while the exchange waits. Without this function, the exchange sends a 503. */
  fallback: (() => PreparedResponse) | null = null
  /** Signs the response. It is null unless the request asks for a signature. */
  signer: ResponseSigner | null = null
  /** The native response. It is invalid in the state `done`. */
  readonly native: HttpResponse
  readonly #server: ExchangeHost
  readonly #endpoint: Endpoint
  readonly #isHead: boolean
  #state: 'reading' | 'running' | 'waiting' | 'done' = 'reading'
  /** Whether nothing is read from the connection. */
  #isPaused = false
  /** Whether the client has closed the connection. After that, the native response must not be used. */
  #isClosed = false
  /** Copies of the pieces of the body before the last one. Null while there is at most one piece, and in the state `done`. */
  #chunks: Uint8Array[] | null = null
  /** The length of all received pieces in bytes. */
  #received = 0
  #isTooLarge = false
  /** The result of `LargeBodies.admit`, or null before the call. If the result is an error, the body is discarded. */
  #admission: ReturnType<LargeBodies['admit']> | null = null
  /** Whether a callback of the native server is running. The socket is then corked, and the callback must not throw. */
  #isInNative = false

  constructor(server: ExchangeHost, endpoint: Endpoint, native: HttpResponse, isHead: boolean) {
    this.#server = server
    this.#endpoint = endpoint
    this.#isHead = isHead
    this.native = native
    native.onAborted(() => this.#abort())
    server.deadlines.add(this)
  }

  get isDone(): boolean {
    return this.#state === 'done'
  }

  get isFromUnixSocket(): boolean {
    return this.#server.isOnUnixSocket
  }

  get shape(): Shape {
    return this.#endpoint.shape
  }

  get path(): string {
    return this.#endpoint.path
  }

  /**
   * Reads the body, then runs the endpoint. The endpoint runs only after the last piece, because an incomplete request must
   * have no effect. `announcedBytes` is the content-length, or -1 without one.
   */
  readBody(announcedBytes: number): void {
    this.#isTooLarge = announcedBytes > this.#endpoint.maxBodyBytes
    this.native.onData((chunk, isLast) => this.#receive(chunk, isLast))
  }

  /**
   * Announces that the response follows later. From then on the request's headers and body must not be used. The connection is
   * paused until the response, because the library closes a connection on which the next request arrives before the response.
   */
  wait(): void {
    if (this.#isPaused) return
    this.#state = 'waiting'
    this.#isPaused = true
    this.native.pause()
  }

  /** Runs the rest of an endpoint in a later turn of the event loop. */
  resume(rest: () => void): void {
    try {
      rest()
    } catch (error) {
      this.#failWith(error)
    }
  }

  /** Sends an error without reading the body, inside the callback that delivered the headers. */
  failUnread(code: ErrorCode): void {
    this.#isInNative = true
    this.fail(code)
    this.#isInNative = false
  }

  /** Sends an error, by default with the message of the code. Only `NOT_ENABLED` is signed, because it is a decision about the license. */
  fail(code: ErrorCode, text?: string): void {
    if (this.isDone) return
    if (code !== 'NOT_ENABLED') this.signer = null
    this.#server.counters.count(code)
    const { maxBodyBytes, shape } = this.#endpoint
    if (code === 'PAYLOAD_TOO_LARGE')
      this.send(errorResponse(shape, code, `The body is larger than ${maxBodyBytes / 1024} KiB.`))
    else this.send(text === undefined ? ERROR_RESPONSES[shape][code] : errorResponse(shape, code, text))
  }

  send(response: PreparedResponse): void {
    if (this.isDone) return
    if (this.signer !== null) return this.#sign(this.signer, response)
    if ((this.isLast || response.closes) && this.#isInNative) {
      // The response is delayed by one turn of the event loop. If another request arrived in the same packet, the library closes the
      // connection before the response, so that a smuggled request is never processed.
      this.wait()
      // The body is copied, because a later response may be written into the same bytes.
      const later = { ...response, body: response.body.slice() }
      setImmediate(() => this.send(later))
      return
    }
    const isCorked = this.#state !== 'waiting' && this.#isInNative
    this.#finish()
    if (isCorked) this.#write(response)
    else this.native.cork(() => this.#write(response))
  }

  #sign(signer: ResponseSigner, response: PreparedResponse): void {
    // The connection is not paused. The signature follows in the same turn of the event loop, in which no further packet is read.
    this.#state = 'waiting'
    this.signer = null
    signer.sign(response)
  }

  /** Sends a response outside of the callbacks of the native server. `signature` is the value of `keyward-signature`, which is copied. */
  sendSigned(response: PreparedResponse, signature: Uint8Array): void {
    if (this.isDone) return
    this.#finish()
    this.native.cork(() => this.#write(response, signature))
  }

  expire(): void {
    if (this.isDone) return
    if (this.#state === 'reading') this.fail(this.#isTooLarge ? 'PAYLOAD_TOO_LARGE' : 'REQUEST_TIMEOUT')
    else if (this.fallback) this.send(this.fallback())
    else this.fail('UNAVAILABLE')
  }

  #receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#state !== 'reading') return
    this.#received += chunk.byteLength
    this.#isInNative = true
    if (this.#received > this.#endpoint.maxBodyBytes) this.#isTooLarge = true
    if (this.#isTooLarge) this.#discard(isLast)
    else if (isLast) this.#runWith(chunk)
    else if (chunk.byteLength > 0 && this.#isAdmitted()) {
      // The chunk is copied, because the library reuses its memory.
      ;(this.#chunks ??= []).push(new Uint8Array(chunk.slice(0)))
    }
    this.#isInNative = false
  }

  /** Returns whether to store the next piece of the body. Discards the body if it is large and not admitted. */
  #isAdmitted(): boolean {
    const { largeBodies } = this.#endpoint
    if (this.#received <= MAX_BODY_BYTES || largeBodies === null) return true
    this.#admission ??= largeBodies.admit(this.authorization)
    if (typeof this.#admission === 'number') return true
    this.#chunks = null
    return false
  }

  #runWith(last: ArrayBuffer): void {
    if (this.#admission === 'UNAVAILABLE') this.fail('UNAVAILABLE')
    // An endpoint authenticates before it reads the body, so it responds with a 401 to the empty body.
    else if (this.#admission === 'UNAUTHORIZED') this.#run(new Uint8Array(0))
    else this.#run(this.#chunks === null ? new Uint8Array(last) : this.#joined(last))
  }

  #discard(isLast: boolean): void {
    this.#chunks = null
    if (isLast || this.#received > MAX_DISCARDED_BYTES) this.fail('PAYLOAD_TOO_LARGE')
  }

  #run(body: Uint8Array): void {
    this.#state = 'running'
    try {
      this.#endpoint.run(this, body)
    } catch (error) {
      this.#failWith(error)
    }
  }

  #failWith(error: unknown): void {
    this.#server.failed(error)
    this.fail('UNAVAILABLE')
  }

  #joined(last: ArrayBuffer): Uint8Array {
    return Buffer.concat([...(this.#chunks ?? []), new Uint8Array(last)])
  }

  #abort(): void {
    this.#isClosed = true
    if (this.isDone) return
    this.#server.counters.count('aborted')
    this.#finish()
  }

  #finish(): void {
    if (this.#isPaused && !this.#isClosed) this.native.resume()
    this.#state = 'done'
    this.#chunks = null
    if (typeof this.#admission === 'number') this.#endpoint.largeBodies?.release(this.#admission)
    this.#admission = null
    this.#server.deadlines.remove(this)
  }

  #write(response: PreparedResponse, signature: Uint8Array | null = null): void {
    const { native } = this
    const closes = response.closes || this.isLast || this.#server.control.isStopping
    if (response.status !== '') native.writeStatus(response.status)
    if (response.body.length > 0) native.writeHeader('content-type', 'application/json')
    for (const [name, value] of response.headers) native.writeHeader(name, value)
    if (signature !== null) native.writeHeader('keyward-signature', signature)
    if (this.allow !== '') native.writeHeader('allow', this.allow)
    if (this.allowOrigin !== '') this.#server.writeCors(native, this)
    if (response.body.length === 0 && !closes) native.endWithoutBody()
    else if (this.#isHead) this.#endHead(response.body.length, closes)
    else native.end(response.body, closes)
  }

  /**
   * Ends a response to HEAD. If the connection stays open, the length is written as a header, because `tryEnd` with a length
   * and no body never completes the response.
   */
  #endHead(bodyBytes: number, closes: boolean): void {
    const { native } = this
    if (!closes) {
      native.writeHeader('content-length', String(bodyBytes)).endWithoutBody()
      return
    }
    endHeadAndClose(native, bodyBytes, () => this.#isClosed)
  }
}
