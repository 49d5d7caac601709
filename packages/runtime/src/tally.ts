/** Counts by key. A key whose count is 0 takes no memory, so a tally of open work is as small as the work. */
export class Tally<Key> {
  #counts = new Map<Key, number>()
  #total = 0

  /** The sum of all counts. */
  get total(): number {
    return this.#total
  }

  of(key: Key): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: Key, change = 1): void {
    const count = this.of(key) + change
    this.#total += change
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  clear(): void {
    this.#total = 0
    // The Map is replaced, because the old table of a cleared Map refers to the next one and so keeps all later tables alive.
    this.#counts = new Map()
  }
}
