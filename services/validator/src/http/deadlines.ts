/**
 * The requests that are being read or wait for an answer, oldest first, so that none is open for longer than its deadline.
 * Nearly all are answered before the next one comes: the newest is only remembered, and joins the list when another comes
 * or the clock ticks. The list is doubly linked through the requests themselves, so that leaving it costs a few writes and
 * nothing is kept of a request that is done. Time is counted in ticks: small integers need no memory of their own.
 */

export interface Dated {
  startedTick: number
  older: Dated | null
  newer: Dated | null
  /** Called once, when the deadline has passed. */
  expire(): void
}

const TICK_MS = 100

export class Deadlines {
  #tick = 0
  /** Came last, and is not in the list yet. */
  #latest: Dated | null = null
  #oldest: Dated | null = null
  #newest: Dated | null = null
  #listed = 0
  readonly #timer: NodeJS.Timeout

  constructor(limitMs: number) {
    const startMs = performance.now()
    this.#timer = setInterval(() => {
      this.#tick = Math.floor((performance.now() - startMs) / TICK_MS)
      this.#list()
      while (this.#oldest && (this.#tick - this.#oldest.startedTick) * TICK_MS >= limitMs) {
        const late = this.#oldest
        this.remove(late)
        late.expire()
      }
    }, TICK_MS)
  }

  get count(): number {
    return this.#listed + (this.#latest === null ? 0 : 1)
  }

  add(item: Dated): void {
    if (this.#latest !== null) this.#list()
    item.startedTick = this.#tick
    this.#latest = item
  }

  remove(item: Dated): void {
    if (item === this.#latest) {
      this.#latest = null
      return
    }
    if (item.older) item.older.newer = item.newer
    else if (this.#oldest === item) this.#oldest = item.newer
    else return
    if (item.newer) item.newer.older = item.older
    else this.#newest = item.older
    item.older = item.newer = null
    this.#listed--
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #list(): void {
    const item = this.#latest
    if (item === null) return
    this.#latest = null
    item.older = this.#newest
    item.newer = null
    if (this.#newest) this.#newest.newer = item
    else this.#oldest = item
    this.#newest = item
    this.#listed++
  }
}
