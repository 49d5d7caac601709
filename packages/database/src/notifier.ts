/** Notifies validators of committed changes. */

import { setTimeout as sleep } from 'node:timers/promises'

import type pg from 'pg'

import { CHANNEL } from './feed/listen.ts'
import { createPool } from './pool.ts'

/** The minimum time between two notifications. */
const INTERVAL_MS = 5
const TIMEOUT_MS = 1_000

/** Sends a notification. Its commit waits neither for the disk nor for a standby, because a notification may be lost. */
const NOTIFY = `select set_config('synchronous_commit', 'off', true), pg_notify('${CHANNEL}', '')`

export class Notifier {
  readonly #pool: pg.Pool
  readonly #onError: (error: unknown) => void
  #isRequested = false
  /** A promise that resolves when the requested notifications have been sent, or null while none is requested. */
  #sending: Promise<void> | null = null

  constructor(url: string, name: string, onError: (error: unknown) => void) {
    // The connection stays open, so that a notification does not wait for a new one.
    this.#pool = createPool(url, { name, max: 1, idleTimeoutMs: 0, statementTimeoutMs: TIMEOUT_MS, onError })
    this.#onError = onError
  }

  /**
   * Requests a notification, which is sent at once, or when 5 ms have passed since the previous one. If it fails, validators read the change
   * within a second.
   */
  readonly notify = (): void => {
    this.#isRequested = true
    this.#sending ??= this.#send()
  }

  /** Sends the requested notification, and closes the connection. */
  async close(): Promise<void> {
    await this.#sending
    await this.#pool.end()
  }

  async #send(): Promise<void> {
    while (this.#isRequested) {
      this.#isRequested = false
      await this.#pool.query(NOTIFY).catch(this.#onError)
      await sleep(INTERVAL_MS)
    }
    this.#sending = null
  }
}
