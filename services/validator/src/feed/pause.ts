/** Pauses the loop of the follower at a moment at which the index equals a snapshot of Postgres. */

import type { Clock } from '../shared/clock.ts'

/** The state that an index contains: the identity of a server, and a snapshot of that server. */
export interface IndexPosition {
  readonly identity: string
  readonly snapshot: string
}

/** The maximum time that `pause` waits for the end of a read. */
const LIMIT_MS = 3_000

export class Pause {
  readonly #clock: Clock
  /** Receives the position when the loop has stopped. The function is null while no caller waits for a pause. */
  #onStopped: ((position: IndexPosition | null) => void) | null = null
  /** Ends the pause. The function is null while the loop runs. */
  #resume: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Returns the position at which the loop stops. Returns null without stopping the loop if there is no position within
   * LIMIT_MS.
   */
  async pause(wake: () => void): Promise<IndexPosition | null> {
    const { promise, resolve } = Promise.withResolvers<IndexPosition | null>()
    const cancel = this.#clock.after(LIMIT_MS, () => resolve(null))
    this.#onStopped = resolve
    wake()
    const position = await promise
    this.#onStopped = null
    cancel()
    return position
  }

  resume(): void {
    this.#resume?.()
  }

  /** Waits until `resume` is called, if a pause was requested and there is a position. The loop calls this method between two reads. */
  async stop(position: IndexPosition | null): Promise<void> {
    const onStopped = this.#onStopped
    if (onStopped === null) return
    this.#onStopped = null
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resume = resolve
    onStopped(position)
    if (position !== null) await promise
    this.#resume = null
  }
}
