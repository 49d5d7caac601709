/**
 * Ends requests that are open for longer than the limit (docs/api.md#h6). A list contains the requests that are being read or
 * wait for Postgres, oldest first. Most requests end before the next one begins. Therefore the latest request stays outside
 * the list until another request is added or the clock ticks.
 *
 * The list is doubly linked through slots of arrays, so removing a request costs a few stores and no allocation. Time is
 * counted in ticks, because V8 stores small integers without allocation.
 */

export interface Expiring {
  /** The slot of the request in the list, or NOT_LISTED. Only Deadlines writes it. */
  deadlineSlot: number
  /** Ends the request. Called once, after the deadline. */
  expire(): void
}

export const NOT_LISTED = -1

const NONE = -1
const TICK_MS = 100

export class Deadlines {
  readonly #timer: NodeJS.Timeout
  /** The number of ticks since the start. */
  #tick = 0
  /** The request that was added last, or null if it has been removed or listed since. */
  #latest: Expiring | null = null
  /** The tick at which `#latest` was added. */
  #latestTick = 0
  // These arrays are indexed by slot. `#older` and `#newer` link the slots of the list. `#newer` also links the free slots.
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

  /** The number of open requests. */
  get count(): number {
    return this.#listed + (this.#latest === null ? 0 : 1)
  }

  /** Adds a request, whose time limit starts now. */
  add(item: Expiring): void {
    if (this.#latest !== null) this.#listLatest()
    this.#latest = item
    this.#latestTick = this.#tick
  }

  /** Removes a request. Has no effect if the request was removed before. */
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
