/**
 * Divides a capacity between organizations by a dynamic threshold, as in the buffers of network switches. Each organization may
 * use as much as is left, so one organization can use half of the capacity, and a second one then a quarter.
 */

import { RowTable } from './row-table.ts'

export class FairShare {
  readonly #capacity: number
  #used = 0
  /** The used amounts by the organization's row. */
  readonly #counts = new RowTable()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get used(): number {
    return this.#used
  }

  /** Returns whether the share of an organization suffices for `amount`. */
  fits(organization: number, amount = 1): boolean {
    return this.#counts.get(organization) + amount <= this.#capacity - this.#used
  }

  /** Takes `amount` for an organization. Returns false if the share of the organization does not suffice. */
  take(organization: number, amount = 1): boolean {
    if (!this.fits(organization, amount)) return false
    this.#used += amount
    this.#counts.set(organization, this.#counts.get(organization) + amount)
    return true
  }

  /** Releases an amount that the organization has taken. */
  release(organization: number, amount = 1): void {
    this.#used -= amount
    this.#counts.set(organization, Math.max(0, this.#counts.get(organization) - amount))
  }

  clear(): void {
    this.#used = 0
    this.#counts.clear()
  }
}
