/**
 * A proxy between a program under test and Postgres that breaks the connection of the n-th call. A call is one round trip: a simple query,
 * or a statement with its parameters (postgresql.org/docs/current/protocol-flow.html).
 */

import { connect, createServer, type Socket } from 'node:net'

const SIMPLE_QUERY = 'Q'.charCodeAt(0)
const SYNC = 'S'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)

export interface CallProxy {
  /** The URL of the database through the proxy. */
  readonly url: string
  /**
   * Breaks the connection of the n-th call from now on, of all these connections together: before Postgres receives the call, or after it
   * has executed the call and before the program receives the response.
   */
  readonly arm: (n: number, when: 'before' | 'after', of?: Calls) => void
  /** Ends the effect of `arm`. Returns whether a connection was broken. */
  readonly disarm: () => boolean
  readonly close: () => Promise<void>
}

/** The calls that are counted. Background work makes calls at any time, which would change the number of a call. Default: all calls. */
export interface Calls {
  /** The application name of the connections. */
  readonly application?: string
  /** Whether only the calls of transactions are counted, from `begin` to `commit`. */
  readonly inTransactions?: boolean
}

export async function startCallProxy(databaseUrl: string): Promise<CallProxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  const armed = { left: 0, when: 'before' as 'before' | 'after', hasBroken: false, of: {} as Calls }
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname)
    let calls = 0
    let application: string | null = null
    let isInTransaction = false
    const isCounted = (): boolean =>
      (armed.of.application ?? application) === application && (isInTransaction || armed.of.inTransactions !== true)
    /** The call after whose response the connection breaks. */
    let lastCall = Infinity
    const cut = (): void => {
      for (const socket of [client, upstream]) socket.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        cut()
      })
    }
    const sentBy = messagesOf(0)
    client.on('data', (data) => {
      for (const message of sentBy(data)) {
        const isCall = message[0] === SIMPLE_QUERY || message[0] === SYNC
        application ??= /application_name\0([^\0]*)/.exec(message.toString())?.[1] ?? ''
        const query = message[0] === SIMPLE_QUERY ? message.toString('utf8', 5, message.length - 1) : ''
        if (query.startsWith('begin')) isInTransaction = true
        if (isCall) calls++
        if (isCall && armed.left > 0 && isCounted() && --armed.left === 0) {
          armed.hasBroken = true
          if (armed.when === 'before') return cut()
          lastCall = calls
        }
        if (/(commit|rollback)$/.test(query)) isInTransaction = false
        upstream.write(message)
      }
    })
    // Postgres also sends ReadyForQuery once before the first call. Calls may be pipelined, so responses of earlier calls may follow a call.
    let responses = -1
    const receivedBy = messagesOf(1)
    upstream.on('data', (data) => {
      for (const message of receivedBy(data)) {
        if (message[0] === READY_FOR_QUERY && ++responses >= lastCall) return cut()
        client.write(message)
      }
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The proxy has no TCP port.')
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${address.port}`
  return {
    url: url.href,
    arm: (n, when, of = {}) => void Object.assign(armed, { left: n, when, hasBroken: false, of }),
    disarm: () => {
      armed.left = 0
      return armed.hasBroken
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns a function that splits data into complete messages. The first message of a client has no byte for its type (`firstTypeBytes` 0). */
function messagesOf(firstTypeBytes: 0 | 1): (data: Buffer) => Buffer[] {
  let unread: Buffer = Buffer.alloc(0)
  let typeBytes = firstTypeBytes
  return (data) => {
    unread = Buffer.concat([unread, data])
    const messages: Buffer[] = []
    while (unread.length >= typeBytes + 4) {
      const length = typeBytes + unread.readInt32BE(typeBytes)
      if (unread.length < length) break
      messages.push(unread.subarray(0, length))
      unread = unread.subarray(length)
      typeBytes = 1
    }
    return messages
  }
}
