/**
 * Limits how often each full license is rechecked in Postgres, across all workers (docs/api.md#s5). The row number of a license,
 * modulo ENTRIES, selects the entry that stores the time of the last recheck. Licenses that share an entry delay each other's
 * rechecks. Another instance limits the renewals of each lease.
 */

const ENTRIES = 1 << 16
const INTERVAL_MS = 200

export class RecheckThrottle {
  readonly shared: SharedArrayBuffer
  /** The low 32 bits of the time of the last recheck, in milliseconds, by entry. 0 before the first recheck. */
  readonly #times: Int32Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(ENTRIES * 4)) {
    this.shared = shared
    this.#times = new Int32Array(shared)
  }

  /** Returns true for one caller per entry and interval. After a jump of the clock, one additional caller may receive true. */
  isDue(license: number, nowMs: number): boolean {
    const entry = license & (ENTRIES - 1)
    const now = nowMs | 0
    const last = Atomics.load(this.#times, entry)
    // The subtraction wraps around, so the difference is large when the clock was set back.
    if (last !== 0 && (now - last) >>> 0 < INTERVAL_MS) return false
    return Atomics.compareExchange(this.#times, entry, last, now === 0 ? 1 : now) === last
  }
}
