/** Decides whether a verified file can be trusted at a given moment. The moment is a parameter; no clock is read here. */

import type { LicensePayload } from './payload.ts'

/** How far a device's clock may be behind a time that has certainly passed (docs/api.md#c4). */
export const CLOCK_TOLERANCE_MS = 5 * 60 * 1000

/**
 * `GOOD`, or the reason why the file is not: the license has expired (`FILE_EXPIRED`), `refreshAfter` has passed
 * (`REFRESH_NEEDED`), or the clock returns no time or one earlier than a time that has certainly passed
 * (`CLOCK_SET_BACK`).
 */
export type FileValidity = 'GOOD' | 'CLOCK_SET_BACK' | 'FILE_EXPIRED' | 'REFRESH_NEEDED'

/**
 * Returns the validity of a verified payload at `nowMs`. `latestSeenMs` is the latest time that the app has seen, from
 * any source; 0 when it has seen none. A file is no longer good at the very millisecond of its expiry or its
 * `refreshAfter` (docs/api.md#c3). The clock is checked first, because a wrong clock makes the other two meaningless.
 */
export function fileValidity(payload: LicensePayload, nowMs: number, latestSeenMs = 0): FileValidity {
  const certainlyPassedMs = Math.max(Date.parse(payload.issuedAt), latestSeenMs)
  if (!Number.isFinite(nowMs) || nowMs < certainlyPassedMs - CLOCK_TOLERANCE_MS) return 'CLOCK_SET_BACK'
  const { expiresAt } = payload.policy
  if (expiresAt !== null && Date.parse(expiresAt) <= nowMs) return 'FILE_EXPIRED'
  if (Date.parse(payload.refreshAfter) <= nowMs) return 'REFRESH_NEEDED'
  return 'GOOD'
}
