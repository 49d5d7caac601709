/**
 * Writes batches one after the other, each under the next number, and the same batch under the same number again until it is
 * known to be applied: so every count arrives exactly once, whatever is lost on the way (API document, "Each rule also
 * reports how many checks it has matched").
 */

import { countRows, createPool, isDataRejected, type RecordBatch, splitBatch, writeBehind } from '@keyward/database'

/** A batch that the database refuses for what it holds is given up after so many times; nothing behind it would ever go. */
const MOST_REFUSALS = 3

export interface FlusherEvents {
  onError(error: unknown): void
  /** A batch was refused for good. */
  onGivenUp(): void
}

export class Flusher {
  readonly #validatorId: string
  readonly #events: FlusherEvents
  readonly #pool: ReturnType<typeof createPool>
  #queue: RecordBatch[] = []
  #number = 0
  #refusals = 0
  #running: Promise<void> | null = null

  constructor(url: string, validatorId: string, events: FlusherEvents) {
    this.#validatorId = validatorId
    this.#events = events
    this.#pool = createPool(url, {
      name: 'keyward validator records',
      max: 1,
      statementTimeoutMs: 5_000,
      onError: (error) => events.onError(error),
    })
  }

  /** Nothing waits to be written: more may be gathered and handed over. */
  get isIdle(): boolean {
    return this.#running === null && this.#queue.length === 0
  }

  /** How many rows wait to be written. */
  get rows(): number {
    return this.#queue.reduce((sum, batch) => sum + countRows(batch), 0)
  }

  add(batch: RecordBatch): void {
    this.#queue.push(...splitBatch(batch))
  }

  /** Writes what waits, until it is written or a write fails; the next call goes on where this one ended. */
  flush(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async close(): Promise<void> {
    await this.#pool.end()
  }

  async #run(): Promise<void> {
    for (let batch = this.#queue[0]; batch; batch = this.#queue[0]) {
      try {
        await writeBehind(this.#pool, this.#validatorId, this.#number + 1, batch)
      } catch (error) {
        this.#events.onError(error)
        if (!isDataRejected(error) || ++this.#refusals < MOST_REFUSALS) return
        this.#events.onGivenUp()
      }
      this.#number++
      this.#refusals = 0
      this.#queue.shift()
    }
  }
}
