/** Queues items so that organizations take turns. An organization that adds many items delays only its own items. */

/** The maximum number of items of one organization that are taken in its turn. */
const TURN = 8

export class FairQueue<T> {
  readonly #isDead: (item: T) => boolean
  /** The items by the organization's row. The organizations are in the order of their turns. No array is empty. */
  readonly #items = new Map<number, T[]>()
  #size = 0

  /** Items for which `isDead` returns true are dropped when their turn comes. */
  constructor(isDead: (item: T) => boolean = () => false) {
    this.#isDead = isDead
  }

  /** The number of items in the queue, including dead items. */
  get size(): number {
    return this.#size
  }

  add(organization: number, item: T): void {
    const items = this.#items.get(organization)
    if (items) items.push(item)
    else this.#items.set(organization, [item])
    this.#size++
  }

  /**
   * Removes and returns up to `most` items, each organization's oldest items first. `share` returns the maximum number of items
   * to take from an organization.
   */
  take(most: number, share: (organization: number) => number = () => Infinity): T[] {
    const taken: T[] = []
    const shares = new Map([...this.#items.keys()].map((organization) => [organization, share(organization)]))
    while (shares.size > 0 && taken.length < most) {
      for (const [organization, left] of shares) {
        const count = Math.min(TURN, left, most - taken.length)
        const next = count > 0 ? this.#takeOf(organization, count) : []
        taken.push(...next)
        if (next.length === 0) shares.delete(organization)
        else shares.set(organization, left - next.length)
      }
    }
    return taken
  }

  /** Takes up to `count` items of an organization, and moves the organization to the end of the order. */
  #takeOf(organization: number, count: number): T[] {
    const items = this.#items.get(organization) ?? []
    const firstAlive = items.findIndex((item) => !this.#isDead(item))
    const dead = items.splice(0, firstAlive < 0 ? items.length : firstAlive)
    const taken = items.splice(0, count)
    this.#size -= dead.length + taken.length
    this.#items.delete(organization)
    if (items.length > 0) this.#items.set(organization, items)
    return taken.filter((item) => !this.#isDead(item))
  }
}
