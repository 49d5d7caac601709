/**
 * The requests that are being read or wait for an answer, oldest first, so that none is open for longer than its deadline.
 * A doubly linked list through the requests themselves: joining and leaving cost a few writes, and nothing is kept of a
 * request that is done. The clock is monotonic and read once a tick.
 */

export interface Dated {
  startedMs: number
  older: Dated | null
  newer: Dated | null
  /** Called once, when the deadline has passed. */
  expire(): void
}

const TICK_MS = 100

export class Deadlines {
  #nowMs = performance.now()
  #oldest: Dated | null = null
  #newest: Dated | null = null
  #count = 0
  readonly #timer: NodeJS.Timeout

  constructor(limitMs: number) {
    this.#timer = setInterval(() => {
      this.#nowMs = performance.now()
      while (this.#oldest && this.#nowMs - this.#oldest.startedMs >= limitMs) {
        const late = this.#oldest
        this.remove(late)
        late.expire()
      }
    }, TICK_MS)
  }

  get count(): number {
    return this.#count
  }

  add(item: Dated): void {
    item.startedMs = this.#nowMs
    item.older = this.#newest
    item.newer = null
    if (this.#newest) this.#newest.newer = item
    else this.#oldest = item
    this.#newest = item
    this.#count++
  }

  remove(item: Dated): void {
    if (item.older) item.older.newer = item.newer
    else if (this.#oldest === item) this.#oldest = item.newer
    else return
    if (item.newer) item.newer.older = item.older
    else this.#newest = item.older
    item.older = item.newer = null
    this.#count--
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
