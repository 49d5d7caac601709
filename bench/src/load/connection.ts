/**
 * A keep-alive HTTP/1.1 connection with one request in flight at a time. It supports only the part of HTTP that a measurement needs, so it
 * reads a response with much less work than a general client. After a failure, it reports the failure and reconnects.
 */

import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

interface ConnectionEvents {
  responded(connection: Connection, status: number, body: string): void
  /** Reports a failure. `busy` is true if a request was in flight. That request is lost. */
  failed(connection: Connection, reason: string, busy: boolean): void
  ready(connection: Connection): void
}

const RECONNECT_AFTER_MS = 100

export class Connection {
  /** The time at which the request in flight was due, in nanoseconds of `performance.now()`. The caller sets it. */
  dueNs = 0
  sentAtMs = 0
  readonly #url: URL
  readonly #events: ConnectionEvents
  #socket: Socket | null = null
  #received = ''
  #busy = false
  #closed = false

  constructor(url: URL, events: ConnectionEvents) {
    this.#url = url
    this.#events = events
    this.#open()
  }

  get busy(): boolean {
    return this.#busy
  }

  send(request: Buffer | string): void {
    this.#busy = true
    this.sentAtMs = performance.now()
    this.#socket?.write(request, 'latin1')
  }

  /** Abandons the request in flight and reports a failure with this reason. */
  abandon(reason: string): void {
    this.#fail(reason)
  }

  close(): void {
    this.#closed = true
    this.#socket?.destroy()
  }

  #open(): void {
    if (this.#closed) return
    const secure = this.#url.protocol === 'https:'
    const host = this.#url.hostname.replace(/^\[|\]$/g, '')
    const port = Number(this.#url.port === '' ? (secure ? 443 : 80) : this.#url.port)
    const socket = secure ? connectTls({ host, port, servername: host }) : connectTcp({ host, port, noDelay: true })
    this.#socket = socket
    this.#received = ''
    socket.setEncoding('latin1')
    socket.once(secure ? 'secureConnect' : 'connect', () => this.#events.ready(this))
    socket.on('data', (chunk: string) => this.#read(chunk))
    socket.once('error', (error: NodeJS.ErrnoException) => this.#fail(error.code ?? error.message, socket))
    socket.once('close', () => this.#fail('closed by the server', socket))
  }

  #read(chunk: string): void {
    this.#received = this.#received === '' ? chunk : this.#received + chunk
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const length = contentLength(this.#received, headEnd)
    if (length === null) return this.#fail('a response without content-length')
    const bodyStart = headEnd + 4
    if (this.#received.length < bodyStart + length) return
    const status = Number(this.#received.slice(9, 12))
    const body = this.#received.slice(bodyStart, bodyStart + length)
    this.#received = ''
    this.#busy = false
    this.#events.responded(this, status, body)
  }

  #fail(reason: string, socket = this.#socket): void {
    if (this.#closed || socket !== this.#socket) return
    const wasBusy = this.#busy
    this.#busy = false
    this.#socket = null
    socket?.destroy()
    this.#events.failed(this, reason, wasBusy)
    setTimeout(() => this.#open(), RECONNECT_AFTER_MS)
  }
}

function contentLength(head: string, headEnd: number): number | null {
  const match = /\r\ncontent-length: *(\d+)/i.exec(head)
  return match === null || match.index > headEnd ? null : Number(match[1])
}
