/**
 * When each full license was last verified again, shared by all workers, so that a machine hammering a full license asks
 * Postgres a few times a second and no more. Licenses share slots by their row; two in one slot only wait for each other.
 */

const SLOTS = 1 << 16
const INTERVAL_MS = 200

export class Reverified {
  readonly shared: SharedArrayBuffer
  readonly #times: Int32Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(SLOTS * 4)) {
    this.shared = shared
    this.#times = new Int32Array(shared)
  }

  /** True for one caller in each interval. The clock may jump: then it is at most true once too often. */
  isDue(license: number, nowMs: number): boolean {
    const slot = license & (SLOTS - 1)
    const now = nowMs | 0
    const last = Atomics.load(this.#times, slot)
    // Differences of wrapped milliseconds; a clock set back gives a large one.
    if (last !== 0 && (now - last) >>> 0 < INTERVAL_MS) return false
    return Atomics.compareExchange(this.#times, slot, last, now === 0 ? 1 : now) === last
  }
}
