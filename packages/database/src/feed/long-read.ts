import pg from 'pg'

import { connectionTo } from '../hosts.ts'

export interface LongReadOptions {
  readonly applicationName?: string
  readonly connectTimeoutMs?: number
  /** The time without data from the server after which the read rejects. Each kind of read has its own default. */
  readonly stallMs?: number
  /** Stops the read, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/**
 * Runs a read over a connection of its own. `read` calls `onProgress` whenever the server has sent data. Rejects when the connection
 * breaks, when the server is silent for too long, and when the signal aborts.
 */
export async function readOverOwnConnection<Result>(
  url: string,
  { applicationName, connectTimeoutMs = 2_000, stallMs, signal }: LongReadOptions & { readonly stallMs: number },
  read: (client: pg.Client, onProgress: () => void) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({
    ...connectionTo(url),
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  })
  let broken: unknown
  const stop = (reason: unknown): void => {
    broken ??= reason
    client.connection.stream.destroy()
  }
  client.on('error', (error) => void (broken ??= error))
  const watchdog = setTimeout(() => stop(new Error(`Postgres was silent for ${stallMs} ms`)), stallMs)
  signal?.addEventListener('abort', () => stop(signal.reason), { once: true })
  try {
    await client.connect()
    if (broken !== undefined) throw broken
    signal?.throwIfAborted()
    return await read(client, () => watchdog.refresh())
  } catch (error) {
    throw broken ?? error
  } finally {
    clearTimeout(watchdog)
    await client.end().catch(() => undefined)
  }
}
