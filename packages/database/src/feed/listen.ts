/**
 * Listens for notifications that something changed, with pg-listen. A notification only wakes: the change log contains what
 * changed. pg-listen's own reconnecting is off, because it can stop for good; the caller reconnects when `onLost` is called.
 */

import pgListen from 'pg-listen'

const CHANNEL = 'keyward_changes'
/** How often the connection is probed. A silent one is lost after this time plus the timeout. */
const CHECK_MS = 1_000
const TIMEOUT_MS = 1_500

export interface ListenOptions {
  readonly onWake: () => void
  /** Called at most once, and not after `close`, when the connection breaks or falls silent. */
  readonly onLost: () => void
  readonly applicationName: string
}

export interface Listener {
  close(): void
}

/** Resolves when it listens. Connect directly: behind a pooler in transaction mode, LISTEN receives nothing. */
export async function listenForChanges(url: string, options: ListenOptions): Promise<Listener> {
  let isOver = false
  const subscriber = pgListen.default(
    {
      connectionString: url,
      application_name: options.applicationName,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    },
    { paranoidChecking: CHECK_MS, retryLimit: 1, parse: (payload) => payload },
  )
  const close = (): void => {
    isOver = true
    // Not awaited: with a server that no longer responds, it would never end.
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
