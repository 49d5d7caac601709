/**
 * Connects the follower to Postgres. One connection identifies the server and reads the log, so every read comes from the
 * identified server. A second connection listens for notifications. When either is lost, both are replaced.
 */

import {
  createPool,
  isStandby,
  lastPublished,
  type Listener,
  loadFeed,
  listenForChanges,
  openChangeLog,
  readFeed,
  readLargeChange,
  requireMigrated,
} from '@keyward/database'

import type { FeedConnection, FeedSource, Load, LoadOutcome, OnBatch } from './follower.ts'

/** The time by which the timeout of the client exceeds that of the server. */
const MARGIN_MS = 300
const CONNECT_TIMEOUT_MS = 1_500
const LISTEN_ATTEMPTS = 3
const LISTENER_NAME = 'keyward validator listener'

export class PostgresSource implements FeedSource {
  readonly #url: string
  readonly #validatorId: string
  readonly #onError: (error: unknown) => void

  /** `validatorId` is the id under which the validator publishes its snapshots. */
  constructor(url: string, validatorId: string, onError: (error: unknown) => void) {
    this.#url = url
    this.#validatorId = validatorId
    this.#onError = onError
  }

  async connect(onWake: () => void, onLost: () => void, timeoutMs: number): Promise<FeedConnection> {
    const url = this.#url
    const pool = createPool(url, {
      name: 'keyward validator feed',
      max: 1,
      statementTimeoutMs: timeoutMs,
      queryTimeoutMs: timeoutMs + MARGIN_MS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      onError: this.#onError,
    })
    const closers = [(): void => void pool.end().catch(this.#onError)]
    const close = (): void => {
      for (const closer of closers.splice(0).toReversed()) closer()
    }
    try {
      const reader = await pool.connect()
      reader.on('error', onLost)
      reader.on('end', onLost)
      closers.push(() => {
        reader.removeAllListeners('end')
        // The connection is destroyed, because ending it would wait for a server that no longer responds.
        reader.release(true)
      })
      // A proxy in front of Postgres may connect the validator to a standby. The server is identified first, so that a failed attempt opens only one connection.
      await requireMigrated(reader)
      const identity = await openChangeLog(reader)
      const listening = await this.#listen(onWake, onLost)
      closers.push(() => listening.close())
      return {
        identify: async () => ({ identity, published: await lastPublished(reader, this.#validatorId) }),
        read: (snapshot, options) => readFeed(reader, snapshot, options),
        readLarge: (since, organizations, onPage) =>
          readLargeChange(url, { since, organizations, onPage, applicationName: 'keyward validator large change' }),
        load: (expected, onBatch) => this.#load(expected, onBatch),
        close,
      }
    } catch (error) {
      close()
      throw error
    }
  }

  /** Listens on the primary. Retries on a standby, because a proxy may lead connections to the former primary during a failover. */
  async #listen(onWake: () => void, onLost: () => void): Promise<Listener> {
    const options = { onWake, onLost, applicationName: LISTENER_NAME }
    for (let attempt = 1; ; attempt++)
      try {
        return await listenForChanges(this.#url, options)
      } catch (error) {
        if (attempt === LISTEN_ATTEMPTS || !isStandby(error)) throw error
      }
  }

  #load(identity: string, onBatch: OnBatch): Load {
    const stopping = new AbortController()
    const load = async (): Promise<LoadOutcome> => {
      const { server, snapshot, reloads } = await loadFeed(this.#url, {
        onBatch,
        applicationName: 'keyward validator load',
        signal: stopping.signal,
      })
      if (server !== identity) throw new Error('Another server responded during the load.')
      return { snapshot, reloads }
    }
    return { done: load(), close: () => stopping.abort() }
  }
}
