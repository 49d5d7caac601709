/**
 * Decides whether a worker records the hostname that a known machine sends (docs/api.md#s6). The hostname of a machine is
 * recorded about once per period and license, because it is usually stored already. Two machines that share an entry displace each
 * other, so their hostnames are recorded more often.
 */

const ENTRIES = 1 << 16
const PERIOD_MS = 5 * 60_000

export class HostnameFilter {
  /** The second word of a machine's hash and the license, mixed, at an index that the first word and the license determine. */
  readonly #machines = new Int32Array(ENTRIES)
  #sinceMs = 0

  isDue(license: number, machineHash0: number, machineHash1: number, nowMs: number): boolean {
    if (Math.abs(nowMs - this.#sinceMs) > PERIOD_MS) {
      this.#machines.fill(0)
      this.#sinceMs = nowMs
    }
    const mixed = Math.imul(license + 1, 0x9e3779b1)
    const entry = (machineHash0 ^ (mixed >>> 16)) & (ENTRIES - 1)
    const word = machineHash1 ^ mixed
    if (this.#machines[entry] === word) return false
    this.#machines[entry] = word
    return true
  }
}
