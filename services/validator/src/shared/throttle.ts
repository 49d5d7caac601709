/**
 * Allows one step per INTERVAL_MS and row, across all workers: the rechecks of a full license (docs/api.md#s5), or the renewals of a lease.
 * The row number, modulo ENTRIES, selects the entry that stores the time of the last step. Rows that share an entry delay each other, which
 * keeps the memory small and costs only a later step.
 */

const ENTRIES = 1 << 16
const INTERVAL_MS = 200

export class Throttle {
  readonly shared: SharedArrayBuffer
  /** The low 32 bits of the time of the last step, in milliseconds, by entry. 0 before the first step. */
  readonly #times: Int32Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(ENTRIES * 4)) {
    this.shared = shared
    this.#times = new Int32Array(shared)
  }

  /** Returns true for one caller per entry and interval. After a jump of the clock, one additional caller may receive true. */
  isDue(row: number, nowMs: number): boolean {
    const entry = row & (ENTRIES - 1)
    const now = nowMs | 0
    const last = Atomics.load(this.#times, entry)
    // The subtraction wraps around, so the difference is large when the clock was set back.
    if (last !== 0 && (now - last) >>> 0 < INTERVAL_MS) return false
    return Atomics.compareExchange(this.#times, entry, last, now === 0 ? 1 : now) === last
  }
}
