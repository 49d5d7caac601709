/** Signs offline license files. The signature covers the exact payload bytes that the file contains. */

import { ed25519 } from '@noble/curves/ed25519.js'

import { encodeBase64Url } from './base64.ts'
import { type LicensePayload, readPayload, serializePayload } from './payload.ts'

/** Returns the bytes that the signature of a file covers. Throws a TypeError for a payload that verifiers would reject. */
export function bytesToSign(payload: LicensePayload): Uint8Array {
  if (readPayload(payload) === null)
    throw new TypeError(
      'The payload of the license file has a missing or invalid field. See LicensePayload for the format.',
    )
  return serializePayload(payload)
}

/**
 * Returns the file `base64url(payload) + "." + base64url(signature)` (docs/api.md#f1). `privateKey` is the 32-byte seed of
 * the key `payload.kid`. Throws a TypeError for a payload that verifiers would reject.
 */
export function signLicenseFile(payload: LicensePayload, privateKey: Uint8Array): string {
  const bytes = bytesToSign(payload)
  return `${encodeBase64Url(bytes)}.${encodeBase64Url(ed25519.sign(bytes, privateKey))}`
}
