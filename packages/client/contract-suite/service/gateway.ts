/**
 * Forwards the client's requests to the service and injects faults: the gateway delays or cuts responses, sends none, or responds instead
 * of the service. It also records the requests.
 */

import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'

import { listen } from './listen.ts'

export type Fault =
  | { kind: 'none' }
  /** Responds instead of the service. */
  | { kind: 'respond'; status: number; headers?: Record<string, string>; body?: string }
  /** Accepts the request and never responds. */
  | { kind: 'hang' }
  /** Delays the response. */
  | { kind: 'slow'; delayMs: number }
  /** Sends half of the response and drops the connection. */
  | { kind: 'cut' }
  /** Drops the connection before the first byte of the response. */
  | { kind: 'drop' }
  /** Sends these characters as bytes instead of an HTTP response, and closes the connection. */
  | { kind: 'raw'; bytes: string }
  /** Sends this text, followed by one blank after each pause until the connection ends. The default pause is 50 ms. */
  | { kind: 'trickle'; start: string; pauseMs?: number }

export interface Gateway {
  url: string
  fault: Fault
  /** The faults of the next requests. They precede `fault`. */
  next: Fault[]
  /** The documents that the gateway serves itself, by path. Faults do not affect them. */
  pages: Map<string, { type: string; body: string }>
  /** The paths of all requests, in order. */
  requests: string[]
  /** Stops listening, like a machine that is down. */
  stop: () => Promise<void>
}

/** Starts a gateway. `route` returns the base URL of the service that serves a path. */
export async function startGateway(route: (path: string) => string): Promise<Gateway> {
  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    const page = gateway.pages.get(path)
    if (page !== undefined) {
      response.writeHead(200, { 'content-type': page.type }).end(page.body)
      return
    }
    gateway.requests.push(path)
    void buffer(request).then(
      (body) => serve(gateway.next.shift() ?? gateway.fault, route(path), request, response, body),
      () => response.destroy(), // the client has ended the connection before its request was complete
    )
  })
  const { url, close } = await listen(server)
  const gateway: Gateway = { url, fault: { kind: 'none' }, next: [], pages: new Map(), requests: [], stop: close }
  return gateway
}

function serve(fault: Fault, target: string, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  switch (fault.kind) {
    case 'respond':
      response.writeHead(fault.status, fault.headers).end(fault.body)
      return
    case 'hang':
      return
    case 'drop':
      response.destroy()
      return
    case 'slow':
      setTimeout(() => relay(target, request, response, body, false), fault.delayMs).unref()
      return
    case 'raw':
      response.socket?.end(fault.bytes, 'latin1')
      return
    case 'trickle':
      trickle(response, fault.start, fault.pauseMs)
      return
    case 'none':
    case 'cut':
      relay(target, request, response, body, fault.kind === 'cut')
  }
}

function trickle({ socket }: ServerResponse, start: string, pauseMs = 50): void {
  socket?.write(start)
  const timer = setInterval(() => socket?.write(' '), pauseMs)
  socket?.on('error', () => socket.destroy())
  socket?.on('close', () => clearInterval(timer))
}

function relay(target: string, request: IncomingMessage, response: ServerResponse, body: Buffer, cut: boolean): void {
  const { method = 'GET', headers, url = '/' } = request
  const upstream = forward(new URL(url, target), { method, headers }, (answer) => {
    void buffer(answer).then((bytes) => {
      const { 'transfer-encoding': _, ...kept } = answer.headers
      response.writeHead(answer.statusCode ?? 502, { ...kept, 'content-length': bytes.length })
      if (!cut) return response.end(bytes)
      return response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy())
    })
  })
  upstream.on('error', () => response.writeHead(502).end())
  upstream.end(body)
}
