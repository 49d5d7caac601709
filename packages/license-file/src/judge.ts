// The whole judgement of an offline license file, in one fixed order: form, key, signature, license, clock, times.
// Invariant: pure; what it knows of the world, the keys, the license and the times, comes in as parameters.

import type { VerificationKey } from './keys.ts'
import type { LicensePayload } from './payload.ts'
import { type FileStanding, fileStanding } from './standing.ts'
import { type FileVerification, verifyLicenseFile } from './verify.ts'

/** What a file is judged against. */
export interface Judge {
  /** The organization's public keys, shipped with the app. */
  keys: readonly VerificationKey[]
  /** The license key that the app runs with. */
  licenseKey: string
  /** The device's clock. */
  nowMs: number
  /** The latest time that the app has seen; 0 when none. */
  latestSeenMs: number
}

/** Why a file is not trusted; `WRONG_LICENSE` when it belongs to another license key. */
export type FileProblem =
  | Extract<FileVerification, { ok: false }>['reason']
  | Exclude<FileStanding, 'GOOD'>
  | 'WRONG_LICENSE'

/** A file that may be trusted now, with what it says, or the first problem found. */
export type FileJudgement = { ok: true; payload: LicensePayload } | { ok: false; reason: FileProblem }

/** Judges a file (API document, Client strategy rule 3). Never throws for any text. */
export function judgeLicenseFile(file: string, judge: Judge): FileJudgement {
  const verified = verifyLicenseFile(file, judge.keys)
  if (!verified.ok) return verified
  if (verified.payload.licenseKey !== judge.licenseKey) return { ok: false, reason: 'WRONG_LICENSE' }
  const standing = fileStanding(verified.payload, judge.nowMs, judge.latestSeenMs)
  return standing === 'GOOD' ? verified : { ok: false, reason: standing }
}
