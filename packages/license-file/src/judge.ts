/**
 * Decides whether an offline license file can be trusted. The order of the checks is fixed: form, key, signature, license,
 * product, clock, times. Invariant: the decision is a pure function of its parameters, which include the time.
 */

import type { VerificationKey } from './keys.ts'
import type { LicensePayload } from './payload.ts'
import { type FileValidity, fileValidity } from './validity.ts'
import { type FileVerification, verifyLicenseFile } from './verify.ts'

/** The parameters of a judgement besides the file. */
export interface JudgingFacts {
  /** The organization's public keys, shipped with the app. */
  keys: readonly VerificationKey[]
  /** The license key that the app uses. */
  licenseKey: string
  /** The product id of the app; null when the app accepts files of all products. */
  productId?: string | null
  /** The time of the device's clock, in milliseconds since 1970. */
  nowMs: number
  /** The latest time that the app has observed, in milliseconds since 1970, or 0 if it has observed none. */
  latestSeenMs: number
}

/**
 * The reason why a file is not trusted. `WRONG_LICENSE`: the file belongs to another license key. `WRONG_PRODUCT`: the file
 * belongs to another product, or contains no product id because it was issued by an earlier version.
 */
export type FileProblem =
  | Extract<FileVerification, { ok: false }>['reason']
  | Exclude<FileValidity, 'GOOD'>
  | 'WRONG_LICENSE'
  | 'WRONG_PRODUCT'

/** The payload of a trusted file, or the first problem found. */
export type FileJudgement = { ok: true; payload: LicensePayload } | { ok: false; reason: FileProblem }

/** Judges a file by the rules of docs/api.md#c3. Never throws, even for malformed text. */
export function judgeLicenseFile(file: string, facts: JudgingFacts): FileJudgement {
  const verified = verifyLicenseFile(file, facts.keys)
  if (!verified.ok) return verified
  if (verified.payload.licenseKey !== facts.licenseKey) return { ok: false, reason: 'WRONG_LICENSE' }
  const { productId = null } = facts
  if (productId !== null && verified.payload.productId !== productId) return { ok: false, reason: 'WRONG_PRODUCT' }
  const validity = fileValidity(verified.payload, facts.nowMs, facts.latestSeenMs)
  return validity === 'GOOD' ? verified : { ok: false, reason: validity }
}
