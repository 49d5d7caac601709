/**
 * Provides timers, and a monotonic time that is the same in all threads. Classes that depend on time receive a clock, so that
 * the simulation can run them on virtual time.
 */

export interface Clock {
  /** Returns the milliseconds since a fixed moment. The value never decreases, even if the wall clock is changed. */
  nowMs(): number
  /** Calls `call` once after `delayMs`. Returns a function that cancels the call. */
  after(delayMs: number, call: () => void): () => void
}

/** The start of this thread on the operating system's monotonic clock. `performance.now()` counts from this time. */
const THREAD_STARTED_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/**
 * Returns the milliseconds on the operating system's monotonic clock. The results of different threads differ by microseconds
 * at most.
 */
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
