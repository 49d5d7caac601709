/**
 * Writes batches of usage one after the other, and numbers them consecutively. A batch is sent with the same number until
 * Postgres confirms it, so no check is counted twice, even when connections are lost (docs/api.md#d5).
 */

import { countRows, createPool, isDataRejected, type RecordBatch, splitBatch, writeBehind } from '@keyward/database'

/**
 * The number of attempts for a batch whose data Postgres rejects. The batch is then dropped, so that later batches can be
 * written.
 */
const MAX_REJECTIONS = 3

interface FlusherEvents {
  onError(error: unknown): void
  /** Called when a batch was dropped. */
  onRejected(): void
}

export class Flusher {
  readonly #validatorId: string
  readonly #events: FlusherEvents
  readonly #pool: ReturnType<typeof createPool>
  /** The batches that Postgres has not confirmed, in the order of their numbers. */
  #queue: RecordBatch[] = []
  /** The number of the last batch that was applied or dropped. */
  #number = 0
  /** The number of times that Postgres has rejected the first batch of the queue. */
  #rejections = 0
  /** The flush in progress, or null. */
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

  /** Whether all batches are written, so that another batch may be added. */
  get isIdle(): boolean {
    return this.#running === null && this.#queue.length === 0
  }

  /** The number of rows that wait to be written. */
  get rows(): number {
    return this.#queue.reduce((sum, batch) => sum + countRows(batch), 0)
  }

  add(batch: RecordBatch): void {
    this.#queue.push(...splitBatch(batch))
  }

  /** Writes batches until all are written or a write fails. The next call continues with the failed batch. */
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
        if (!isDataRejected(error) || ++this.#rejections < MAX_REJECTIONS) return
        this.#events.onRejected()
      }
      this.#number++
      this.#rejections = 0
      this.#queue.shift()
    }
  }
}
