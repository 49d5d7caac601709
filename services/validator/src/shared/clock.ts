/**
 * Monotonic time and timers of the main thread. What reads time receives a clock, so that the simulation can run it on
 * virtual time.
 */

export interface Clock {
  /** Milliseconds since a fixed moment. Never goes back, whatever happens to the wall clock. */
  nowMs(): number
  /** Calls `call` once after `delayMs`. Returns a function that cancels the call. */
  after(delayMs: number, call: () => void): () => void
}

export const SYSTEM_CLOCK: Clock = {
  nowMs: () => performance.now(),
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs)
    return () => clearTimeout(timer)
  },
}
