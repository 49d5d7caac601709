/** Prunes the change log. Every validator attempts to prune, and the database runs one attempt at a time. Entries of the last hour are kept. */

import { createPool, pruneFeed } from '@keyward/database'
import { repeat } from '@keyward/runtime'

const INTERVAL_MS = 60_000

export class Pruner {
  readonly #pool: ReturnType<typeof createPool>
  readonly #onError: (error: unknown) => void
  #stop: () => Promise<void> = () => Promise.resolve()

  constructor(url: string, onError: (error: unknown) => void) {
    this.#onError = onError
    this.#pool = createPool(url, { name: 'keyward validator pruner', max: 1, onError })
  }

  start(): void {
    const prune = async (): Promise<void> => void (await pruneFeed(this.#pool))
    this.#stop = repeat(prune, { everyMs: INTERVAL_MS, onError: this.#onError })
  }

  async close(): Promise<void> {
    await this.#stop()
    await this.#pool.end()
  }
}
