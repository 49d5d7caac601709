/** Queues items so that their owners take turns. An owner that adds many items delays only its own items. */

/** The maximum number of items of one owner that are taken in its turn. */
const TURN = 8

interface FairQueueOptions<T> {
  /** Items for which `isDead` returns true are dropped when their turn comes. */
  isDead?: (item: T) => boolean
  /** Items for which `isReady` returns false keep their place. Later items of the owner are taken instead. */
  isReady?: (item: T) => boolean
}

export class FairQueue<Owner, T> {
  readonly #isDead: (item: T) => boolean
  readonly #isReady: (item: T) => boolean
  /** The items by owner. The owners are in the order of their turns. No array is empty. */
  readonly #items = new Map<Owner, T[]>()
  #size = 0

  constructor({ isDead = () => false, isReady = () => true }: FairQueueOptions<T> = {}) {
    this.#isDead = isDead
    this.#isReady = isReady
  }

  /** The number of items in the queue, including dead items. */
  get size(): number {
    return this.#size
  }

  add(owner: Owner, item: T): void {
    const items = this.#items.get(owner)
    if (items) items.push(item)
    else this.#items.set(owner, [item])
    this.#size++
  }

  /** Removes and returns up to `most` items, each owner's oldest items first, and at most `share(owner)` items of an owner. */
  take(most: number, share: (owner: Owner) => number = () => Infinity): T[] {
    const taken: T[] = []
    const shares = new Map([...this.#items.keys()].map((owner) => [owner, share(owner)]))
    while (shares.size > 0 && taken.length < most) {
      for (const [owner, left] of shares) {
        const count = Math.min(TURN, left, most - taken.length)
        const next = count > 0 ? this.#takeOf(owner, count) : []
        taken.push(...next)
        if (next.length === 0) shares.delete(owner)
        else shares.set(owner, left - next.length)
      }
    }
    return taken
  }

  /** Takes up to `count` items of an owner, and moves the owner to the end of the order. */
  #takeOf(owner: Owner, count: number): T[] {
    const items = this.#items.get(owner) ?? []
    const taken: T[] = []
    const kept: T[] = []
    let i = 0
    for (; i < items.length && taken.length < count; i++) {
      const item = items[i]!
      if (this.#isDead(item)) continue
      if (this.#isReady(item)) taken.push(item)
      else kept.push(item)
    }
    const left = kept.concat(items.slice(i))
    this.#size += left.length - items.length
    this.#items.delete(owner)
    if (left.length > 0) this.#items.set(owner, left)
    return taken
  }
}
