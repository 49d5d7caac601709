/**
 * A TCP proxy that injects failures between a program under test and a server. It can discard data as a half-open connection does, cut
 * connections, delay data, and refuse connections.
 */

import { createServer, connect, type Socket } from 'node:net'

export interface Proxy {
  readonly port: number
  /** The number of accepted connections. */
  readonly connections: number
  /** Discards the data of both directions until `heal`. New connections are still accepted. */
  readonly swallow: () => void
  /** Breaks every connection and refuses new ones until `heal`. */
  readonly refuse: () => void
  /** Breaks all connections once. New connections work. */
  readonly cut: () => void
  /** Sets the delay of data in both directions, in milliseconds. */
  readonly delay: (ms: number) => void
  /** Ends `swallow` and `refuse`. Breaks the connections whose data was discarded. */
  readonly heal: () => void
  readonly close: () => Promise<void>
}

/** Starts a proxy that listens on a free port of 127.0.0.1 and forwards connections to the target. */
export async function startProxy(targetPort: number, targetHost = '127.0.0.1'): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const state = { mode: 'pass' as 'pass' | 'swallow' | 'refuse', delayMs: 0, connections: 0 }
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const hold = (socket: Socket): void => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  }
  const forward = (from: Socket, to: Socket): void => {
    from.on('data', (data) => {
      if (state.mode !== 'pass') return
      if (state.delayMs === 0) to.write(data)
      else setTimeout(() => to.write(data), state.delayMs)
    })
    from.on('close', () => {
      if (state.mode !== 'swallow') to.destroy()
    })
  }
  const server = createServer((client) => {
    state.connections++
    hold(client)
    if (state.mode === 'refuse') {
      client.destroy()
      return
    }
    const upstream = connect(targetPort, targetHost)
    hold(upstream)
    forward(client, upstream)
    forward(upstream, client)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy has no TCP port.')
  return {
    port: address.port,
    get connections() {
      return state.connections
    },
    swallow: () => void (state.mode = 'swallow'),
    refuse: () => {
      state.mode = 'refuse'
      cut()
    },
    cut,
    delay: (ms) => void (state.delayMs = ms),
    heal: () => {
      if (state.mode === 'swallow') cut()
      state.mode = 'pass'
    },
    close: async () => {
      cut()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    },
  }
}
