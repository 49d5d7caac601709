/**
 * When each machine's last sight was written, so that it is written now and then and not with every flush. Two generations
 * of a set: membership means written within the last one to two periods, and forgetting costs nothing.
 */

const PERIOD_MS = 5 * 60_000
const MOST = 200_000

export class SeenMachines {
  #current = new Set<string>()
  #previous = new Set<string>()
  #sinceMs = performance.now()

  /** True once in a period for each machine, and then counted as written. `machine`: whatever names it and its license. */
  isDue(machine: string): boolean {
    if (performance.now() - this.#sinceMs > PERIOD_MS || this.#current.size >= MOST) {
      this.#previous = this.#current
      this.#current = new Set()
      this.#sinceMs = performance.now()
    }
    if (this.#current.has(machine) || this.#previous.has(machine)) return false
    this.#current.add(machine)
    return true
  }
}
