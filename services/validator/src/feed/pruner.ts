/**
 * Prunes the change log about once a minute. Every validator attempts to prune, and the database runs one attempt at a time. Entries of the
 * last hour are kept.
 */

import { createPool, pruneFeed } from '@keyward/database'

const INTERVAL_MS = 60_000

export class Pruner {
  readonly #pool: ReturnType<typeof createPool>
  readonly #onError: (error: unknown) => void
  #timer: NodeJS.Timeout | null = null
  /** The run in progress, or null. */
  #running: Promise<unknown> | null = null

  constructor(url: string, onError: (error: unknown) => void) {
    this.#onError = onError
    this.#pool = createPool(url, { name: 'keyward validator pruner', max: 1, onError })
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#running ??= this.#prune()
    }, INTERVAL_MS)
  }

  async close(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer)
    await this.#running
    await this.#pool.end()
  }

  async #prune(): Promise<void> {
    await pruneFeed(this.#pool).catch(this.#onError)
    this.#running = null
  }
}
