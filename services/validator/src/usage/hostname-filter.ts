/**
 * Decides whether a worker records the name that a known machine sends (docs/api.md#s6): about once in a period, because
 * nearly always the name is stored already. Two machines of one entry displace each other, so they are recorded more often.
 */

const ENTRIES = 1 << 16
const PERIOD_MS = 5 * 60_000

export class HostnameFilter {
  /** By the first word of the machine's hash: the second one. */
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
