/** Limits warnings that may occur many times a second, such as those during an outage, to one log entry per interval. */

import type { Logger } from '@keyward/runtime'

const INTERVAL_MS = 5_000

/**
 * Returns a function that logs the message with the given fields. It logs the first call immediately, and then at most one call
 * per interval. The field `suppressed` of an entry is the number of calls since the previous entry that were not logged.
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
