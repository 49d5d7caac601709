/** Decides whether a verified file can be trusted at a given time. The functions do not read a clock. */

import type { LicensePayload } from './payload.ts'

/** The maximum lag of a device's clock behind a time that has certainly passed (docs/api.md#c4). */
export const CLOCK_TOLERANCE_MS = 5 * 60 * 1000

/**
 * The validity of a file. `FILE_EXPIRED`: the license and its grace period have ended. `REFRESH_NEEDED`: `refreshAfter` has passed. `CLOCK_SET_BACK`: the clock
 * returns no time, or a time more than `CLOCK_TOLERANCE_MS` before one that has certainly passed.
 */
export type FileValidity = 'GOOD' | 'CLOCK_SET_BACK' | 'FILE_EXPIRED' | 'REFRESH_NEEDED'

/**
 * Returns the validity of a verified payload at `nowMs`. `latestSeenMs` is the latest time that the app has observed from
 * any source, or 0. A file stops being good at the exact millisecond of its expiry or `refreshAfter` (docs/api.md#c3). The
 * clock is checked first, because the other results depend on a correct clock.
 */
export function fileValidity(payload: LicensePayload, nowMs: number, latestSeenMs = 0): FileValidity {
  const certainlyPassedMs = Math.max(Date.parse(payload.issuedAt), latestSeenMs)
  if (!Number.isFinite(nowMs) || nowMs < certainlyPassedMs - CLOCK_TOLERANCE_MS) return 'CLOCK_SET_BACK'
  const { expiresAt, graceEndsAt = expiresAt } = payload.policy
  if (graceEndsAt !== null && Date.parse(graceEndsAt) <= nowMs) return 'FILE_EXPIRED'
  if (Date.parse(payload.refreshAfter) <= nowMs) return 'REFRESH_NEEDED'
  return 'GOOD'
}
