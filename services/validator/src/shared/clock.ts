/**
 * Monotonic time, the same in all threads, and timers. What reads time receives a clock, so that the simulation can run it on
 * virtual time.
 */

export interface Clock {
  /** Milliseconds since a fixed moment. Never goes back, whatever happens to the wall clock. */
  nowMs(): number
  /** Calls `call` once after `delayMs`. Returns a function that cancels the call. */
  after(delayMs: number, call: () => void): () => void
}

/** `performance.now()` counts from the start of a thread, the operating system's monotonic clock does not. */
const THREAD_STARTED_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** Returns milliseconds on the operating system's monotonic clock. All threads have the same, up to microseconds. */
export function monotonicMs(): number {
  return THREAD_STARTED_MS + performance.now()
}

export const SYSTEM_CLOCK: Clock = {
  nowMs: monotonicMs,
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs)
    return () => clearTimeout(timer)
  },
}
