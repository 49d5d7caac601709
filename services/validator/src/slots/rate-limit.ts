/**
 * Allows each key `burst` steps at once, and on average one step per `intervalMs` (the generic cell rate algorithm). A key that has not been
 * used for a while takes no memory.
 */
export class RateLimit<Key> {
  readonly #intervalMs: number
  readonly #burst: number
  /** The time at which the intervals of all steps have passed, by key, in the order of the last steps. */
  readonly #idleAtMs = new Map<Key, number>()

  constructor(intervalMs: number, burst: number) {
    this.#intervalMs = intervalMs
    this.#burst = burst
  }

  isReady(key: Key, nowMs: number): boolean {
    return (this.#idleAtMs.get(key) ?? -Infinity) - nowMs <= (this.#burst - 1) * this.#intervalMs
  }

  spend(key: Key, nowMs: number): void {
    const idleAtMs = Math.max(this.#idleAtMs.get(key) ?? -Infinity, nowMs) + this.#intervalMs
    this.#idleAtMs.delete(key)
    this.#idleAtMs.set(key, idleAtMs)
    // An idle key is equivalent to an unknown one. Each step removes the oldest keys as far as they are idle.
    for (const [oldest, oldestIdleAtMs] of this.#idleAtMs) {
      if (oldestIdleAtMs > nowMs) break
      this.#idleAtMs.delete(oldest)
    }
  }
}
