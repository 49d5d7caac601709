/**
 * Verifies the form and the signature of an offline license file, independent of the time. Invariant: a payload is returned
 * only when the key with its `kid` signed exactly the bytes in the file.
 */

import { ed25519 } from '@noble/curves/ed25519.js'

import { decodeBase64Url } from './base64.ts'
import type { VerificationKey } from './keys.ts'
import { type LicensePayload, parsePayload } from './payload.ts'

/**
 * The result of a verification. `MALFORMED`: the text does not have the documented form. `UNKNOWN_KEY`: none of the given
 * keys has the `kid`. `BAD_SIGNATURE`: the key with the `kid` did not sign these bytes.
 */
export type FileVerification =
  | { ok: true; payload: LicensePayload }
  | { ok: false; reason: 'MALFORMED' | 'UNKNOWN_KEY' | 'BAD_SIGNATURE' }

const SIGNATURE_BYTES = 64
/** The maximum length of a file in characters. It bounds the cost of hostile input. Real files are far shorter. */
const MAX_FILE_LENGTH = 16 * 1024

/**
 * Verifies the form of a file and its signature by the key with its `kid`. The caller must compare the license key and check the times with
 * `fileValidity`. Never throws, even for malformed text.
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
 * Returns the license key in a file without verifying the signature, or null for a malformed file. The result cannot be
 * trusted. Use it only to sort files.
 */
export function claimedLicenseKey(file: string): string | null {
  return parseFile(file)?.payload.licenseKey ?? null
}

/** Parses a file without verifying its signature. Returns null for a malformed file. */
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

/** Verifies a signature by RFC 8032. Unlike a verification by ZIP 215, it rejects non-canonical points and keys of small order. */
export function isSignedBy(publicKey: Uint8Array, bytes: Uint8Array, signature: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, bytes, publicKey, { zip215: false })
  } catch {
    return false
  }
}
