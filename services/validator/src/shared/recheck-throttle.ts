/**
 * Limits how often each full license is rechecked in Postgres, across all workers (docs/api.md#s5). Licenses share entries
 * by their row number: two licenses of one entry only delay each other's rechecks.
 */

const ENTRIES = 1 << 16
const INTERVAL_MS = 200

export class RecheckThrottle {
  readonly shared: SharedArrayBuffer
  /** The low 32 bits of the time of the last recheck in milliseconds. 0 before the first. */
  readonly #times: Int32Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(ENTRIES * 4)) {
    this.shared = shared
    this.#times = new Int32Array(shared)
  }

  /** Returns true for one caller per interval. When the clock jumps, it returns true at most once too often. */
  isDue(license: number, nowMs: number): boolean {
    const entry = license & (ENTRIES - 1)
    const now = nowMs | 0
    const last = Atomics.load(this.#times, entry)
    // The difference of wrapped milliseconds; a clock that was set back gives a large one.
    if (last !== 0 && (now - last) >>> 0 < INTERVAL_MS) return false
    return Atomics.compareExchange(this.#times, entry, last, now === 0 ? 1 : now) === last
  }
}
