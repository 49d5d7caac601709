/**
 * Limits how often the last use of each machine is written (docs/api.md#s6). Two sets contain the machines of the current and
 * of the previous period of five minutes. A machine in either set was written within the last two periods. The sets store
 * hashes in typed arrays, because hundreds of thousands of strings would burden the main thread's garbage collector. The hashes
 * are the keyed hashes of verdicts, so callers cannot choose machine ids that collide. If two machines have the same 64-bit
 * hash, one of them is not written for up to two periods.
 */

import type { ActivityTable } from './activity-table.ts'
import { PairSet } from './pair-set.ts'

const PERIOD_MS = 5 * 60_000
const CAPACITY = 200_000

export class SeenMachines {
  #current: PairSet
  #previous: PairSet
  /** The time at which the current period began. */
  #sinceMs = performance.now()

  /** `capacity` is the size of one set. When the current set is full, the next period begins early. */
  constructor(capacity = CAPACITY) {
    this.#current = new PairSet(capacity)
    this.#previous = new PairSet(capacity)
  }

  /**
   * Returns whether the last use of the entry's machine is due. If it is due, counts the machine as written. A machine is due
   * once in one to two periods.
   */
  isDue(activity: Pick<ActivityTable, 'machineOf'>, entry: number): boolean {
    if (performance.now() - this.#sinceMs > PERIOD_MS || this.#current.isFull) this.#rotate()
    const { license, generation, machineHash0, machineHash1 } = activity.machineOf(entry)
    const before = this.#previous.find(machineHash0, machineHash1, license, generation)
    if (before >= 0 && this.#previous.isTaken(before)) return false
    const at = this.#current.find(machineHash0, machineHash1, license, generation)
    // A machine without a place in the set is due at each check.
    if (at < 0) return true
    if (this.#current.isTaken(at)) return false
    this.#current.take(at)
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
