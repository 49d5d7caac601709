/**
 * Divides a capacity between organizations. Each may use as much as is left, so one alone gets half of the capacity, and
 * however many use all that they can get, one that uses little finds its share (a dynamic threshold, as in the buffers of
 * network switches).
 */

export class FairShare {
  readonly #capacity: number
  #used = 0
  /** By the organization's row. No value is 0. */
  #counts = new Map<number, number>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get used(): number {
    return this.#used
  }

  /** Takes `amount` for an organization. Returns false if its share does not suffice. */
  take(organization: number, amount = 1): boolean {
    const count = (this.#counts.get(organization) ?? 0) + amount
    if (count > this.#capacity - this.#used) return false
    this.#used += amount
    this.#counts.set(organization, count)
    return true
  }

  /** Gives back what `take` took. */
  release(organization: number, amount = 1): void {
    this.#used -= amount
    const count = (this.#counts.get(organization) ?? 0) - amount
    if (count > 0) this.#counts.set(organization, count)
    else this.#counts.delete(organization)
  }

  clear(): void {
    this.#used = 0
    // Replaced, because the table of a cleared Map keeps its size.
    this.#counts = new Map()
  }
}
