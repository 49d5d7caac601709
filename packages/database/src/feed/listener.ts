// Hears that something changed. One connection that LISTENs and sends a heartbeat; when it breaks or falls silent it is
// replaced, for ever. A notification only wakes: after each connect the feed must be read, for what was notified
// meanwhile is lost.
//
// States: connecting -> listening -> broken -> waiting -> connecting; closed from any.

import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

import { openChangeLog } from './join-feed.ts'

export interface ListenerOptions {
  /** Something changed: read the feed. */
  readonly onWake: () => void
  /** The connection stands and listens: read the feed, or load everything when `server` is another than before. */
  readonly onConnected: (server: string) => void
  readonly onError?: (error: Error) => void
  readonly applicationName?: string
  readonly heartbeatMs?: number
  /** How long a connect and a heartbeat may take. */
  readonly timeoutMs?: number
  readonly retryMs?: number
}

export interface Listener {
  /** By `performance.now()`, when Postgres was last heard on this connection; -Infinity: never. No wall clock moves it. */
  readonly lastHeardAtMs: () => number
  readonly isConnected: () => boolean
  readonly close: () => Promise<void>
}

/** Starts connecting at once and returns. Connect directly: behind a pooler in transaction mode LISTEN hears nothing. */
export function startListener(url: string, options: ListenerOptions): Listener {
  const { heartbeatMs = 1_000, timeoutMs = 1_500, retryMs = 250 } = options
  const closing = new AbortController()
  let heardAtMs = -Infinity
  let connected = false
  const heard = (): void => void (heardAtMs = performance.now())

  /** One connection from its beginning to its end, which is always an error. */
  const session = async (): Promise<void> => {
    const client = new pg.Client({
      connectionString: url,
      application_name: options.applicationName ?? 'keyward listener',
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      keepAlive: true,
    })
    const broken = new AbortController()
    client.on('error', (error) => broken.abort(error))
    client.on('end', () => broken.abort(new Error('Postgres ended the connection')))
    client.on('notification', () => {
      heard()
      if (connected) options.onWake()
    })
    const signal = AbortSignal.any([broken.signal, closing.signal])
    const destroy = (): void => void client.connection.stream.destroy()
    closing.signal.addEventListener('abort', destroy)
    try {
      await client.connect()
      const server = await openChangeLog(client)
      await client.query('listen keyward_changes')
      heard()
      connected = true
      options.onConnected(server)
      for (;;) {
        await sleep(heartbeatMs, undefined, { signal })
        await client.query('select')
        heard()
      }
    } finally {
      connected = false
      closing.signal.removeEventListener('abort', destroy)
      destroy()
    }
  }

  const follow = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await session().catch((error: unknown) => {
        if (!closing.signal.aborted) options.onError?.(toError(error))
      })
      await sleep(retryMs, undefined, { signal: closing.signal }).catch(() => undefined)
    }
  }

  const followed = follow()
  return {
    lastHeardAtMs: () => heardAtMs,
    isConnected: () => connected,
    close: async () => {
      closing.abort()
      await followed
    },
  }
}

/** An aborted wait carries what it was aborted with. */
function toError(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  return error.name === 'AbortError' && error.cause instanceof Error ? error.cause : error
}
