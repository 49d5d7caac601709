/**
 * Decides whether an offline license file can be trusted. The order of the checks is fixed: form, key, signature, license,
 * product, machine, clock, times. Invariant: the decision is a pure function of its parameters, which include the time.
 */

import type { VerificationKey } from './keys.ts'
import type { LicensePayload } from './payload.ts'
import { type FileValidity, fileValidity } from './validity.ts'
import { type FileVerification, verifyLicenseFile } from './verify.ts'

/** The app that uses a file. */
export interface FileUser {
  /** The license key that the app uses. */
  licenseKey: string
  /** The product id of the app; null when the app accepts files of all products. */
  productId?: string | null | undefined
  /** The id of the machine; null for an app without machine ids, which rejects files for one machine. */
  machineId?: string | null | undefined
}

/** The parameters of a judgement besides the file. */
export interface JudgingFacts extends FileUser {
  /** The organization's public keys, shipped with the app. */
  keys: readonly VerificationKey[]
  /** The time of the device's clock, in milliseconds since 1970. */
  nowMs: number
  /** The latest time that the app has observed, in milliseconds since 1970, or 0 if it has observed none. */
  latestSeenMs: number
}

/**
 * The reason why a file does not belong to an app. `WRONG_LICENSE`: the file belongs to another license key. `WRONG_PRODUCT`: the file
 * belongs to another product, or contains no product id because it was issued by an earlier version. `WRONG_MACHINE`: the file belongs to
 * another machine.
 */
export type OwnerProblem = 'WRONG_LICENSE' | 'WRONG_PRODUCT' | 'WRONG_MACHINE'

/** The reason why a file is not trusted. */
export type FileProblem =
  | Extract<FileVerification, { ok: false }>['reason']
  | Exclude<FileValidity, 'GOOD'>
  | OwnerProblem

/** The payload of a trusted file, or the first problem found. */
export type FileJudgement = { ok: true; payload: LicensePayload } | { ok: false; reason: FileProblem }

/** Judges a file by the rules of docs/api.md#c3. Never throws, even for malformed text. */
export function judgeLicenseFile(file: string, facts: JudgingFacts): FileJudgement {
  const verified = verifyLicenseFile(file, facts.keys)
  if (!verified.ok) return verified
  const problem = ownerProblem(verified.payload, facts)
  if (problem !== null) return { ok: false, reason: problem }
  const validity = fileValidity(verified.payload, facts.nowMs, facts.latestSeenMs)
  return validity === 'GOOD' ? verified : { ok: false, reason: validity }
}

/** Returns why the file with this payload does not belong to the app, or null if it does. */
export function ownerProblem(payload: LicensePayload, user: FileUser): OwnerProblem | null {
  const { licenseKey, productId = null, machineId = null } = user
  if (payload.licenseKey !== licenseKey) return 'WRONG_LICENSE'
  if (productId !== null && payload.productId !== productId) return 'WRONG_PRODUCT'
  return payload.machineId === undefined || payload.machineId === machineId ? null : 'WRONG_MACHINE'
}
