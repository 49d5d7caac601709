/**
 * One request and its one answer. Whatever happens to it (an answer, an abort, the deadline) happens once; afterwards every
 * call does nothing, because the native response may no longer be touched.
 *
 *   reading ──last chunk──► running ──answer──► done
 *      │                       └──waits──► waiting ──answer──► done
 *      └──abort, deadline, too large──► done        (from every state; whoever leaves while waiting is noticed by the answer)
 */

import type { HttpResponse } from 'uWebSockets.js'

import type { Control } from '../shared/control.ts'
import type { Counters } from '../shared/counters.ts'
import type { Dated, Deadlines } from './deadlines.ts'
import { type Answer, ERROR_ANSWERS, type ErrorCode, type Shape } from './responses.ts'

export const MAX_BODY_BYTES = 16 * 1024

export interface Endpoint {
  shape: Shape
  /** Called with the whole body; answers, now or later, through the exchange. The bytes are gone when it returns. */
  run(exchange: Exchange, body: Uint8Array): void
}

/** The server that an exchange belongs to, as far as the exchange needs it. */
export interface ExchangeHost {
  readonly control: Control
  readonly counters: Counters
  readonly deadlines: Deadlines
  failed(error: unknown): void
  writeCors(response: HttpResponse, exchange: Exchange): void
}

const NO_HEADERS: readonly string[] = []

/** Reading the clock for every request would be seen in the throughput. */
const TIMED_EVERY = 64
let opened = 0

export class Exchange implements Dated {
  /** When the head was there, of one in 64 requests. In an object: a number with a fraction would cost every request one. */
  readonly timed: { readonly fromMs: number } | null =
    ++opened % TIMED_EVERY === 0 ? { fromMs: performance.now() } : null
  startedTick = 0
  older: Dated | null = null
  newer: Dated | null = null
  authorization = ''
  forwarded: readonly string[] = NO_HEADERS
  /** `access-control-allow-origin`, '' for none. */
  allowOrigin = ''
  /** `allow`, of a 405 or a preflight; '' for none. */
  allow = ''
  /** `access-control-allow-methods` of a preflight; '' for none. */
  preflightMethods = ''
  /** The connection closes behind the answer. */
  isLast = false
  /** What to answer when the deadline passes while it waits; null: 503. */
  fallback: Answer | null = null
  readonly response: HttpResponse
  readonly #server: ExchangeHost
  readonly #endpoint: Endpoint
  readonly #isHead: boolean
  #state: 'reading' | 'running' | 'waiting' | 'done' = 'reading'
  #isClosed = false
  #parts: Uint8Array[] | null = null
  #received = 0

  constructor(server: ExchangeHost, endpoint: Endpoint, response: HttpResponse, isHead: boolean) {
    this.#server = server
    this.#endpoint = endpoint
    this.#isHead = isHead
    this.response = response
    response.onAborted(() => this.#abort())
    server.deadlines.add(this)
  }

  get isDone(): boolean {
    return this.#state === 'done'
  }

  get shape(): Shape {
    return this.#endpoint.shape
  }

  /** Reads the body, then runs the endpoint. Nothing is done before the last chunk: until then it may not be a request. */
  readBody(): void {
    this.response.onData((chunk, isLast) => this.#take(chunk, isLast))
  }

  /**
   * The answer will come later. The request's headers and body must not be read from here on, and nothing is read from the
   * connection until then: the library ends one whose next request comes before the answer.
   */
  wait(): void {
    this.#state = 'waiting'
    this.response.pause()
  }

  /** Fails without reading the body, inside the callback that brought the head. */
  failUnread(code: ErrorCode): void {
    this.#isInNative = true
    this.fail(code)
    this.#isInNative = false
  }

  fail(code: ErrorCode): void {
    if (this.isDone) return
    this.#server.counters.count(code)
    this.send(ERROR_ANSWERS[this.shape][code])
  }

  send(answer: Answer): void {
    if (this.isDone) return
    if ((this.isLast || answer.closes) && this.#isInNative) {
      // Not at once: while an answer is awaited, a request that comes behind this one ends the connection unanswered.
      this.wait()
      setImmediate(() => this.send(answer))
      return
    }
    const isNested = this.#state !== 'waiting' && this.#isInNative
    this.#finish()
    if (isNested) this.#write(answer)
    else this.response.cork(() => this.#write(answer))
  }

  expire(): void {
    if (this.isDone) return
    if (this.#state === 'reading') this.fail('REQUEST_TIMEOUT')
    else if (this.fallback) this.send(this.fallback)
    else this.fail('UNAVAILABLE')
  }

  #isInNative = false

  /** Runs inside a callback of the server, where the socket is corked already and nothing may be thrown. */
  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#state !== 'reading') return
    this.#received += chunk.byteLength
    this.#isInNative = true
    if (this.#received > MAX_BODY_BYTES) this.fail('PAYLOAD_TOO_LARGE')
    else if (isLast) this.#run(this.#parts === null ? new Uint8Array(chunk) : this.#joined(chunk))
    // The chunk's memory is taken back when this returns.
    else if (chunk.byteLength > 0) (this.#parts ??= []).push(new Uint8Array(chunk.slice(0)))
    this.#isInNative = false
  }

  #run(body: Uint8Array): void {
    this.#state = 'running'
    try {
      this.#endpoint.run(this, body)
    } catch (error) {
      this.#server.failed(error)
      this.fail('UNAVAILABLE')
    }
  }

  #joined(last: ArrayBuffer): Uint8Array {
    return Buffer.concat([...(this.#parts ?? []), new Uint8Array(last)])
  }

  #abort(): void {
    this.#isClosed = true
    if (this.isDone) return
    this.#server.counters.count('aborted')
    this.#finish()
  }

  #finish(): void {
    if (this.#state === 'waiting' && !this.#isClosed) this.response.resume()
    this.#state = 'done'
    this.#parts = null
    this.#server.deadlines.remove(this)
  }

  #write(answer: Answer): void {
    const { response } = this
    const closes = answer.closes || this.isLast || this.#server.control.isStopping
    if (answer.status !== '') response.writeStatus(answer.status)
    if (answer.body.length > 0) response.writeHeader('content-type', 'application/json')
    for (const [name, value] of answer.headers) response.writeHeader(name, value)
    if (this.allow !== '') response.writeHeader('allow', this.allow)
    if (this.allowOrigin !== '') this.#server.writeCors(response, this)
    if (this.#isHead) this.#endHead(answer.body.length, closes)
    else response.end(answer.body, closes)
  }

  /** Told a length, the library leaves the answer to a HEAD open for ever; so the length is a header like others. */
  #endHead(bodyBytes: number, closes: boolean): void {
    const { response } = this
    if (!closes) {
      response.writeHeader('content-length', String(bodyBytes)).endWithoutBody()
      return
    }
    response.writeHeader('connection', 'close').tryEnd('', bodyBytes)
    setImmediate(() => {
      if (!this.#isClosed) response.close()
    })
  }
}
