/** Limits the memory for bodies that several requests hold at once. */

import { ApiError } from '../http/problem.ts'

/** The bytes of one body. */
interface HeldBytes {
  /** Adds received bytes. Throws UNAVAILABLE when the budget has fewer bytes left. */
  take: (bytes: number) => void
  /** Returns the bytes to the budget. */
  release: () => void
}

export class ByteBudget {
  #left: number
  readonly #what: string
  readonly #onReject: () => void

  /** `what` completes the words "Too many … are being received at once". `onReject` is called for each rejected body. */
  constructor(bytes: number, what: string, onReject: () => void) {
    this.#left = bytes
    this.#what = what
    this.#onReject = onReject
  }

  hold(): HeldBytes {
    let held = 0
    return {
      take: (bytes) => {
        if (bytes > this.#left) {
          this.#onReject()
          const detail = `Too many ${this.#what} are being received at once. Retry in 1 s.`
          throw new ApiError('UNAVAILABLE', detail, { headers: { 'retry-after': '1' } })
        }
        this.#left -= bytes
        held += bytes
      },
      release: () => {
        this.#left += held
        held = 0
      },
    }
  }
}
