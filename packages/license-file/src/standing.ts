// Whether a verified file may be trusted at a given moment. Reads no clock: the moment is a parameter.

import type { LicensePayload } from './payload.ts'

/** How far a device's clock may be behind a time that is known to have passed. */
export const CLOCK_TOLERANCE_MS = 5 * 60 * 1000

/**
 * `GOOD`, or why not: the license expired (`FILE_EXPIRED`), the file outlived its `refreshAfter` (`REFRESH_NEEDED`), or
 * the clock tells no time, or an earlier one than has surely passed (`CLOCK_SET_BACK`).
 */
export type FileStanding = 'GOOD' | 'CLOCK_SET_BACK' | 'FILE_EXPIRED' | 'REFRESH_NEEDED'

/**
 * The standing of a verified payload at `nowMs`. `latestSeenMs` is the latest time that the app has seen, however it
 * saw it; 0 when it has seen none. A file stops being good at its expiry and at its `refreshAfter`, from that very
 * moment (API document, Client strategy rule 4). The clock is judged first: behind it the other two mean nothing.
 */
export function fileStanding(payload: LicensePayload, nowMs: number, latestSeenMs = 0): FileStanding {
  const surelyPassedMs = Math.max(Date.parse(payload.issuedAt), latestSeenMs)
  if (!Number.isFinite(nowMs) || nowMs < surelyPassedMs - CLOCK_TOLERANCE_MS) return 'CLOCK_SET_BACK'
  const { expiresAt } = payload.policy
  if (expiresAt !== null && Date.parse(expiresAt) <= nowMs) return 'FILE_EXPIRED'
  if (Date.parse(payload.refreshAfter) <= nowMs) return 'REFRESH_NEEDED'
  return 'GOOD'
}
