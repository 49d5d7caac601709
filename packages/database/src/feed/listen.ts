/**
 * Listens for notifications of changes, with pg-listen. A notification contains no change: it triggers a read of the change log.
 * `retryLimit: 1` turns off the reconnection of pg-listen, because its attempts can stop permanently. The caller reconnects when `onLost`
 * is called.
 */

import pgListen from 'pg-listen'

import { connectionTo } from '../hosts.ts'

export const CHANNEL = 'keyward_changes'
/** The interval at which the connection is probed. A connection without responses counts as lost after this interval plus the timeout. */
const CHECK_MS = 1_000
const TIMEOUT_MS = 1_500

export interface ListenOptions {
  readonly onWake: () => void
  /** Called when the connection breaks or stops responding, at most once and not after `close`. */
  readonly onLost: () => void
  readonly applicationName: string
}

export interface Listener {
  close(): void
}

/**
 * Connects, and resolves when the connection listens. The connection must be direct, because LISTEN receives nothing behind a pooler in
 * transaction mode.
 */
export async function listenForChanges(url: string, options: ListenOptions): Promise<Listener> {
  let isOver = false
  const subscriber = pgListen.default(
    {
      ...connectionTo(url),
      application_name: options.applicationName,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    },
    { paranoidChecking: CHECK_MS, retryLimit: 1, parse: (payload) => payload },
  )
  const close = (): void => {
    isOver = true
    // This call is not awaited, because it never ends when the server no longer responds.
    subscriber.close().catch(() => undefined)
  }
  subscriber.notifications.on(CHANNEL, options.onWake)
  subscriber.events.on('error', () => {
    if (isOver) return
    close()
    options.onLost()
  })
  try {
    await subscriber.connect()
    await subscriber.listenTo(CHANNEL)
  } catch (error) {
    close()
    throw error
  }
  return { close }
}
