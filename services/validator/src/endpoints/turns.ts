/**
 * Bounds the work of one turn of the event loop, so that long requests that arrive or end together do not delay short ones. Further requests
 * wait for the next turns, in which their owners take turns.
 */

import { FairQueue } from '@keyward/runtime/fair-queue'

interface TurnsOptions<Item> {
  /** When a turn has done this amount of work, the next item waits for the next turn. */
  most: number
  isDead: (item: Item) => boolean
  /** Runs an item that has waited. It reports its work with `spend`. */
  run: (item: Item) => void
  /** Calls the function in the next turn. */
  later?: (next: () => void) => void
}

export class Turns<Item> {
  readonly #options: TurnsOptions<Item>
  readonly #later: (next: () => void) => void
  readonly #waiting: FairQueue<number, Item>
  /** The work of this turn. */
  #spent = 0
  #isScheduled = false

  constructor(options: TurnsOptions<Item>) {
    this.#options = options
    this.#later = options.later ?? ((next) => void setImmediate(next))
    this.#waiting = new FairQueue({ isDead: options.isDead })
  }

  /** Whether a new item may run at once. */
  get isFree(): boolean {
    return this.#spent < this.#options.most && this.#waiting.size === 0
  }

  /** Adds to the work of this turn. */
  spend(work: number): void {
    this.#spent += work
    this.#schedule()
  }

  add(owner: number, item: Item): void {
    this.#waiting.add(owner, item)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#later(() => {
      this.#isScheduled = false
      this.#spent = 0
      while (this.#spent < this.#options.most) {
        const [next] = this.#waiting.take(1)
        if (next === undefined) return
        this.#options.run(next)
      }
      this.#schedule()
    })
  }
}
