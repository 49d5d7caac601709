/** Logs a warning that may occur many times a second, as in every outage: at most once per interval, with a count. */

import type { Logger } from '@keyward/process'

const INTERVAL_MS = 5_000

/**
 * Returns a function that logs the message with some fields. It logs the first call at once. In each following interval it
 * logs at most one call, with the number of calls in between as `suppressed`.
 */
export function throttledWarning(log: Logger, message: string, intervalMs = INTERVAL_MS): (fields: object) => void {
  let silentUntilMs = -Infinity
  let suppressed = 0
  return (fields) => {
    const nowMs = performance.now()
    if (nowMs < silentUntilMs) {
      suppressed++
      return
    }
    log.warn({ ...fields, ...(suppressed > 0 ? { suppressed } : {}) }, message)
    silentUntilMs = nowMs + intervalMs
    suppressed = 0
  }
}
