/**
 * The change log as the follower needs it: one connection that listens and reads, so that what it reads comes from the very
 * server that it has identified, and whose silence is noticed by the next read's time-out. Connect directly: behind a pooler
 * in transaction mode a listener hears nothing.
 */

import { createPool, joinFeed, openChangeLog, readFeed } from '@keyward/database'

import type { FeedConnection, FeedSource } from './follower.ts'

/** A read is one statement of a few milliseconds; it is late long before a second has passed. */
const STATEMENT_TIMEOUT_MS = 1_500
const QUERY_TIMEOUT_MS = 1_800
const CONNECT_TIMEOUT_MS = 1_500

export class PostgresSource implements FeedSource {
  readonly #url: string
  readonly #onError: (error: unknown) => void

  constructor(url: string, onError: (error: unknown) => void) {
    this.#url = url
    this.#onError = onError
  }

  async connect(onWake: () => void, onLost: () => void): Promise<FeedConnection> {
    const url = this.#url
    const pool = createPool(url, {
      name: 'keyward validator feed',
      max: 1,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      queryTimeoutMs: QUERY_TIMEOUT_MS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      onError: this.#onError,
    })
    // A client that failed is destroyed, not ended: an end would wait for a server that no longer answers.
    const end = (): void => void pool.end().catch(this.#onError)
    try {
      const client = await pool.connect()
      const close = (): void => {
        client.removeAllListeners('end')
        client.release(true)
        end()
      }
      client.on('error', onLost)
      client.on('end', onLost)
      client.on('notification', onWake)
      try {
        await client.query('listen keyward_changes')
      } catch (error) {
        close()
        throw error
      }
      return {
        identify: () => openChangeLog(client),
        read: (snapshot) => readFeed(client, snapshot),
        async load(identity, onBatch) {
          const joined = await joinFeed(url, { onBatch, applicationName: 'keyward validator load' })
          if (joined.server !== identity) throw new Error('Another server answered while everything was loaded.')
          return joined.snapshot
        },
        close,
      }
    } catch (error) {
      end()
      throw error
    }
  }
}
