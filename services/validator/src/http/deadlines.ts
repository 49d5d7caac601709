/**
 * Ends requests that are open for longer than the limit (docs/api.md#h6). It lists the requests that are being read or that
 * wait for Postgres, oldest first. Most requests end before the next one begins, so the latest request is only remembered;
 * it joins the list when another one is added or the clock ticks.
 *
 * The list is doubly linked through slots of arrays, so that removing a request costs a few stores and allocates nothing.
 * Time is counted in ticks, which are small integers and need no memory of their own.
 */

/** A request with a deadline. */
export interface Expiring {
  /** Owned by Deadlines: the slot of the request in its list, or NOT_LISTED. */
  deadlineSlot: number
  /** Ends the request. Called once, after the deadline. */
  expire(): void
}

export const NOT_LISTED = -1

const NONE = -1
const TICK_MS = 100

export class Deadlines {
  readonly #timer: NodeJS.Timeout
  /** How many ticks have passed since the start. */
  #tick = 0
  /** The request that was added last, unless it was removed or listed since. */
  #latest: Expiring | null = null
  /** The tick at which `#latest` was added. */
  #latestTick = 0
  // By slot. The slots of the list are linked by `#older` and `#newer`, the free slots by `#newer` alone.
  readonly #items: (Expiring | null)[] = []
  readonly #startedTicks: number[] = []
  readonly #older: number[] = []
  readonly #newer: number[] = []
  /** The ends of the list. Both are NONE when it is empty. */
  #oldest = NONE
  #newest = NONE
  /** The first free slot. */
  #free = NONE
  /** The length of the list. */
  #listed = 0

  constructor(limitMs: number) {
    const startMs = performance.now()
    this.#timer = setInterval(() => {
      this.#tick = Math.floor((performance.now() - startMs) / TICK_MS)
      this.#listLatest()
      for (let slot = this.#oldest; slot !== NONE; slot = this.#oldest) {
        if ((this.#tick - this.#startedTicks[slot]!) * TICK_MS < limitMs) break
        const late = this.#items[slot]!
        this.remove(late)
        late.expire()
      }
    }, TICK_MS)
  }

  /** How many requests are open. */
  get count(): number {
    return this.#listed + (this.#latest === null ? 0 : 1)
  }

  /** Adds a request that is not listed. */
  add(item: Expiring): void {
    if (this.#latest !== null) this.#listLatest()
    this.#latest = item
    this.#latestTick = this.#tick
  }

  /** Removes a request. Does nothing if it was removed before. */
  remove(item: Expiring): void {
    if (item === this.#latest) {
      this.#latest = null
      return
    }
    const slot = item.deadlineSlot
    if (slot === NOT_LISTED) return
    item.deadlineSlot = NOT_LISTED
    const older = this.#older[slot]!
    const newer = this.#newer[slot]!
    if (older === NONE) this.#oldest = newer
    else this.#newer[older] = newer
    if (newer === NONE) this.#newest = older
    else this.#older[newer] = older
    this.#items[slot] = null
    this.#newer[slot] = this.#free
    this.#free = slot
    this.#listed--
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #listLatest(): void {
    const item = this.#latest
    if (item === null) return
    this.#latest = null
    let slot = this.#free
    if (slot === NONE) slot = this.#items.length
    else this.#free = this.#newer[slot]!
    item.deadlineSlot = slot
    this.#items[slot] = item
    this.#startedTicks[slot] = this.#latestTick
    this.#older[slot] = this.#newest
    this.#newer[slot] = NONE
    if (this.#newest === NONE) this.#oldest = slot
    else this.#newer[this.#newest] = slot
    this.#newest = slot
    this.#listed++
  }
}
