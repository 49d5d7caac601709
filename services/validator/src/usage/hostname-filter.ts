/**
 * Decides whether a worker records the hostname that a known machine sends (docs/api.md#s6). The hostname of a machine is
 * recorded about once per period, because it is usually stored already. Two machines that share an entry displace each other,
 * so their hostnames are recorded more often.
 */

const ENTRIES = 1 << 16
const PERIOD_MS = 5 * 60_000

export class HostnameFilter {
  /** The second word of a machine's hash, at an index that the first word determines. */
  readonly #machines = new Int32Array(ENTRIES)
  #sinceMs = 0

  isDue(machineHash0: number, machineHash1: number, nowMs: number): boolean {
    if (Math.abs(nowMs - this.#sinceMs) > PERIOD_MS) {
      this.#machines.fill(0)
      this.#sinceMs = nowMs
    }
    const entry = machineHash0 & (ENTRIES - 1)
    if (this.#machines[entry] === machineHash1) return false
    this.#machines[entry] = machineHash1
    return true
  }
}
