/** Lets others stop the loop of the follower at a point where the index is exactly a state that Postgres had. */

import type { Clock } from '../shared/clock.ts'

/** What an index contains: the server, and a snapshot of it. */
export interface IndexPosition {
  readonly identity: string
  readonly snapshot: string
}

/** `pause` waits for the end of a read at most this long. */
const LIMIT_MS = 3_000

export class Parking {
  readonly #clock: Clock
  /** Receives the position when the loop has stopped. Null while nobody waits for it. */
  #onParked: ((position: IndexPosition | null) => void) | null = null
  /** Ends a pause. */
  #resume: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns the position at which the loop stops, or null, and nothing stops, when there is none within a while. */
  async pause(wake: () => void): Promise<IndexPosition | null> {
    const { promise, resolve } = Promise.withResolvers<IndexPosition | null>()
    const cancel = this.#clock.after(LIMIT_MS, () => resolve(null))
    this.#onParked = resolve
    wake()
    const position = await promise
    this.#onParked = null
    cancel()
    return position
  }

  resume(): void {
    this.#resume?.()
  }

  /** Called by the loop. If somebody waits for a pause, waits for its end; without a position at once. */
  async stop(position: IndexPosition | null): Promise<void> {
    const onParked = this.#onParked
    if (onParked === null) return
    this.#onParked = null
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resume = resolve
    onParked(position)
    if (position !== null) await promise
    this.#resume = null
  }
}
