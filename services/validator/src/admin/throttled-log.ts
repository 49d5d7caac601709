/**
 * Logs an error that may come many times a second, as every outage does: the first at once, then one in a while that says
 * how many were left out.
 */

import type { Logger } from '@keyward/process'

const PAUSE_MS = 5_000

/** A function that takes errors and logs them under the message. */
export function quietly(log: Logger, message: string, pauseMs = PAUSE_MS): (error: unknown) => void {
  let silentUntilMs = -Infinity
  let leftOut = 0
  return (error) => {
    const nowMs = performance.now()
    if (nowMs < silentUntilMs) {
      leftOut++
      return
    }
    log.warn({ err: error, ...(leftOut > 0 ? { leftOut } : {}) }, message)
    silentUntilMs = nowMs + pauseMs
    leftOut = 0
  }
}
