/**
 * Divides a capacity between organizations by a dynamic threshold, as in the buffers of network switches. Each organization may
 * use as much as is left, so one organization can use half of the capacity, and a second one then a quarter.
 */

export class FairShare {
  readonly #capacity: number
  #used = 0
  /** The used amounts by the organization's row. No value is 0. */
  #counts = new Map<number, number>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get used(): number {
    return this.#used
  }

  /** Takes `amount` for an organization. Returns false if the share of the organization does not suffice. */
  take(organization: number, amount = 1): boolean {
    const count = (this.#counts.get(organization) ?? 0) + amount
    if (count > this.#capacity - this.#used) return false
    this.#used += amount
    this.#counts.set(organization, count)
    return true
  }

  /** Releases an amount that the organization has taken. */
  release(organization: number, amount = 1): void {
    this.#used -= amount
    const count = (this.#counts.get(organization) ?? 0) - amount
    if (count > 0) this.#counts.set(organization, count)
    else this.#counts.delete(organization)
  }

  clear(): void {
    this.#used = 0
    // The Map is replaced, because the old table of a cleared Map refers to the next one and so keeps all later tables alive.
    this.#counts = new Map()
  }
}
