/** Determines the time of the next attempt of a delivery (docs/api.md#w5), a mail, and an event of a shop (docs/api.md#b6). */

import type { Attempt } from '../outbound/sender.ts'

const MINUTES = 60
const HOURS = 3_600
/** The seconds from each failed attempt to the next, without jitter. */
export const RETRY_SECONDS = [
  5,
  5 * MINUTES,
  30 * MINUTES,
  2 * HOURS,
  5 * HOURS,
  10 * HOURS,
  14 * HOURS,
  20 * HOURS,
  24 * HOURS,
] as const
const JITTER = 0.2
const MAX_RETRY_AFTER_SECONDS = 24 * HOURS
/** The status that disables the endpoint. */
export const GONE = 410
/** The statuses whose `Retry-After` header is followed. */
const BUSY = new Set([429, 503])

/** Returns the seconds until the next attempt, or null when the delivery has failed. `attempts` is the number of attempts so far. */
export function secondsToRetry(
  attempts: number,
  { status, retryAfterSeconds }: Pick<Attempt, 'status' | 'retryAfterSeconds'>,
  random = Math.random,
): number | null {
  const seconds = RETRY_SECONDS[attempts - 1]
  if (seconds === undefined || status === GONE) return null
  const wanted = status !== null && BUSY.has(status) ? (retryAfterSeconds ?? 0) : 0
  // Jitter applies to `Retry-After` as well, so that deliveries that failed together are not attempted again together.
  return Math.max(seconds, Math.min(wanted, MAX_RETRY_AFTER_SECONDS)) * (1 + JITTER * random())
}
