/**
 * Limits how often the last use of each machine is written (docs/api.md#s6). Two sets contain the machines of the current and
 * of the previous period of five minutes. A machine in either set was written within the last two periods. The sets store
 * hashes in typed arrays, because hundreds of thousands of strings would burden the main thread's garbage collector. The hashes
 * are the keyed hashes of verdicts, so callers cannot choose machine ids that collide. If two machines have the same 64-bit
 * hash, one of them is not written for up to two periods.
 */

import type { ActivityTable } from './activity-table.ts'

const PERIOD_MS = 5 * 60_000
const CAPACITY = 200_000
/**
 * The maximum number of positions that linear probing examines for one machine. A machine that finds no free position among them
 * is due at each check.
 */
const MAX_STEPS = 64

export class SeenMachines {
  #current: HashSet
  #previous: HashSet
  /** The time at which the current period began. */
  #sinceMs = performance.now()

  /** `capacity` is the size of one set. When the current set is full, the next period begins early. */
  constructor(capacity = CAPACITY) {
    this.#current = new HashSet(capacity)
    this.#previous = new HashSet(capacity)
  }

  /**
   * Returns whether the last use of the entry's machine is due. If it is due, counts the machine as written. A machine is due
   * once in one to two periods.
   */
  isDue(activity: Pick<ActivityTable, 'machineOf'>, entry: number): boolean {
    if (performance.now() - this.#sinceMs > PERIOD_MS || this.#current.isFull) this.#rotate()
    const { license, generation, machineHash0, machineHash1 } = activity.machineOf(entry)
    const high = machineHash0 ^ Math.imul(license, 0x2c1b3c6d)
    const low = machineHash1 ^ Math.imul(generation, 0x297a2d39) || 1
    if (this.#current.has(high, low) || this.#previous.has(high, low)) return false
    this.#current.add(high, low)
    return true
  }

  #rotate(): void {
    const oldest = this.#previous
    this.#previous = this.#current
    this.#current = oldest
    oldest.clear()
    this.#sinceMs = performance.now()
  }
}

/**
 * A set of pairs of words, as a hash table. The first word selects the position at which linear probing starts. The second word is
 * never 0.
 */
class HashSet {
  readonly #capacity: number
  readonly #mask: number
  readonly #words: Int32Array
  #size = 0

  constructor(capacity: number) {
    this.#capacity = capacity
    const slots = 2 ** Math.ceil(Math.log2(capacity * 2))
    this.#mask = slots - 1
    this.#words = new Int32Array(slots * 2)
  }

  get isFull(): boolean {
    return this.#size >= this.#capacity
  }

  has(high: number, low: number): boolean {
    const at = this.#find(high, low)
    return at >= 0 && this.#words[at + 1] === low
  }

  /** Adds a pair that the set does not contain, if linear probing finds a free position for it. */
  add(high: number, low: number): void {
    const at = this.#find(high, low)
    if (at < 0) return
    this.#words[at] = high
    this.#words[at + 1] = low
    this.#size++
  }

  clear(): void {
    this.#words.fill(0)
    this.#size = 0
  }

  /** Returns the index of the pair or of a free position for it, or -1 if linear probing finds neither within MAX_STEPS positions. */
  #find(high: number, low: number): number {
    for (let step = 0; step < MAX_STEPS; step++) {
      const at = ((high + step) & this.#mask) * 2
      if (this.#words[at + 1] === 0 || (this.#words[at] === high && this.#words[at + 1] === low)) return at
    }
    return -1
  }
}
