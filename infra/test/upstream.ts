/** Simulates a service behind the balancer under test. It records requests, and is ready while `isReady` is true. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'

import { listenOn } from '../shared/ports.ts'

export interface Seen {
  method: string
  url: string
  /** The version of HTTP. */
  version: string
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}

/** A header as long as the longest signature of a response (docs/api.md#g3). */
export const SIGNATURE = 'x'.repeat(735)

export class Upstream {
  readonly seen: Seen[] = []
  /** The remote ports of all connections. */
  readonly connections = new Set<number>()
  readonly name: string
  isReady = true
  url = ''
  adminUrl = ''
  readonly #server: Server
  readonly #admin: Server

  constructor(name: string) {
    this.name = name
    this.#server = createServer((incoming, response) => void this.#respond(incoming, response))
    this.#admin = createServer((incoming, response) => {
      response.writeHead(incoming.url === '/livez' || this.isReady ? 200 : 503).end()
    })
  }

  async listen(): Promise<this> {
    this.url = `http://127.0.0.1:${await listenOn(this.#server, 0)}`
    this.adminUrl = `http://127.0.0.1:${await listenOn(this.#admin, 0)}`
    return this
  }

  close(): void {
    for (const server of [this.#server, this.#admin]) {
      server.close()
      server.closeAllConnections()
    }
  }

  async #respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = incoming
    this.connections.add(incoming.socket.remotePort ?? 0)
    if (url === '/early') {
      response.writeHead(413, { connection: 'close' }).end('too large')
      return
    }
    // A validator's HTTP library sends such a response to headers that are too large.
    if (headers['x-large'] !== undefined) {
      response.writeHead(431, { connection: 'close' }).end('<h1>Too large</h1>')
      return
    }
    this.seen.push({ method, url, version: incoming.httpVersion, headers, body: await buffer(incoming) })
    response.writeHead(400, {
      'content-type': 'application/json',
      'x-of-service': this.name,
      location: '/elsewhere',
      'keyward-signature': SIGNATURE,
    })
    response.end(JSON.stringify({ from: this.name }))
  }
}
