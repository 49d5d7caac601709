/**
 * Delays error responses to a caller that receives many of them. A rejected request still costs the only thread of the process up to a
 * millisecond. Most callers wait for a response before they send the next request, so a delay limits how often each connection is rejected.
 */

const WINDOW_MS = 1_000
/** The number of error responses that one owner receives without a delay in each window. */
const IMMEDIATE = 200
const DELAY_MS = 250

export class RejectionPacer {
  /** The number of error responses in this window, by owner. */
  readonly #counts = new Map<string, number>()
  #windowEndsMs = 0

  /** Counts an error response to `owner` and returns its delay in milliseconds. */
  delayMs(owner: string, nowMs = performance.now()): number {
    if (nowMs >= this.#windowEndsMs) {
      this.#counts.clear()
      this.#windowEndsMs = nowMs + WINDOW_MS
    }
    const count = (this.#counts.get(owner) ?? 0) + 1
    this.#counts.set(owner, count)
    return count > IMMEDIATE ? DELAY_MS : 0
  }
}
