/**
 * Keeps the change log short: every validator asks for it about once a minute, and the database sees to it that only one is
 * at it. What a reader may still need within the hour is kept.
 */

import { createPool, pruneFeed } from '@keyward/database'

const EVERY_MS = 60_000

export class Pruner {
  readonly #pool: ReturnType<typeof createPool>
  readonly #onError: (error: unknown) => void
  #timer: NodeJS.Timeout | null = null
  #running: Promise<unknown> | null = null

  constructor(url: string, onError: (error: unknown) => void) {
    this.#onError = onError
    this.#pool = createPool(url, { name: 'keyward validator pruner', max: 1, onError })
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#running ??= this.#prune()
    }, EVERY_MS)
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
