// Hears that something changed, with pg-listen. A notification only wakes: what changed is read from the change log.
// pg-listen's own reconnecting is off, because it can give up for good; whoever listens connects anew when it is lost.

import pgListen from 'pg-listen'

const CHANNEL = 'keyward_changes'
/** So often the connection is asked for a sign of life; a silent one is lost after this and the time-out. */
const CHECK_MS = 1_000
const TIMEOUT_MS = 1_500

export interface ListenOptions {
  readonly onWake: () => void
  /** The connection broke or fell silent; called at most once, and not after `close`. */
  readonly onLost: () => void
  readonly applicationName: string
}

export interface Listening {
  close(): void
}

/** Resolves when it listens. Connect directly: behind a pooler in transaction mode LISTEN hears nothing. */
export async function listenForChanges(url: string, options: ListenOptions): Promise<Listening> {
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
    // Not waited for: a server that no longer answers would never let it end.
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
