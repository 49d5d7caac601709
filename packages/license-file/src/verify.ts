/**
 * Verifies the form and the signature of an offline license file, and nothing that depends on the time.
 * Invariant: a payload is returned only when the key that its `kid` names signed exactly those bytes.
 */

import { ed25519 } from '@noble/curves/ed25519.js'

import { decodeBase64Url } from './base64.ts'
import type { VerificationKey } from './keys.ts'
import { type LicensePayload, parsePayload } from './payload.ts'

/**
 * The result of a verification. `MALFORMED`: the text does not have the documented form. `UNKNOWN_KEY`: `kid` names none
 * of the given keys. `BAD_SIGNATURE`: the key that `kid` names did not sign these bytes.
 */
export type FileVerification =
  | { ok: true; payload: LicensePayload }
  | { ok: false; reason: 'MALFORMED' | 'UNKNOWN_KEY' | 'BAD_SIGNATURE' }

const SIGNATURE_BYTES = 64
// Far above the length of any real file; bounds the cost of hostile input.
const MAX_FILE_LENGTH = 16 * 1024

/**
 * Verifies the form of a file and its signature by the key that its `kid` names. The caller compares the license key
 * and, with `fileValidity`, the times. Never throws, whatever the text.
 */
export function verifyLicenseFile(file: string, keys: readonly VerificationKey[]): FileVerification {
  const parts = parseFile(file)
  if (parts === null) return { ok: false, reason: 'MALFORMED' }
  const { bytes, signature, payload } = parts
  const key = keys.find((candidate) => candidate.keyId === payload.kid)
  if (key === undefined) return { ok: false, reason: 'UNKNOWN_KEY' }
  return isSignedBy(key.publicKey, bytes, signature) ? { ok: true, payload } : { ok: false, reason: 'BAD_SIGNATURE' }
}

/**
 * Returns the license key that a file claims to belong to, without verifying its signature; null for a malformed file.
 * For sorting files only: nothing that this returns can be trusted.
 */
export function claimedLicenseKey(file: string): string | null {
  return parseFile(file)?.payload.licenseKey ?? null
}

/** Parses a file. The payload is not verified; it names the key to verify it with. Returns null for a malformed file. */
function parseFile(file: string): { bytes: Uint8Array; signature: Uint8Array; payload: LicensePayload } | null {
  if (file.length > MAX_FILE_LENGTH) return null
  const [payloadPart, signaturePart, ...rest] = file.split('.')
  if (payloadPart === undefined || signaturePart === undefined || rest.length > 0) return null
  const bytes = decodeBase64Url(payloadPart)
  const signature = decodeBase64Url(signaturePart)
  if (bytes === null || signature?.length !== SIGNATURE_BYTES) return null
  const payload = parsePayload(bytes)
  return payload === null ? null : { bytes, signature, payload }
}

/** Verifies as in RFC 8032: unlike ZIP 215, it rejects non-canonical points and keys of small order. */
function isSignedBy(publicKey: Uint8Array, bytes: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, bytes, publicKey, { zip215: false })
  } catch {
    return false
  }
}
