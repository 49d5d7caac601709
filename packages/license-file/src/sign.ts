/** Signs offline license files. The signature covers the exact payload bytes that the file contains. */

import { ed25519 } from '@noble/curves/ed25519.js'

import { encodeBase64Url } from './base64.ts'
import { type LicensePayload, parsePayload, serializePayload } from './payload.ts'

/** Returns the Ed25519 signature of the bytes. `privateKey` is the 32-byte seed. */
export type Sign = (bytes: Uint8Array, privateKey: Uint8Array) => Uint8Array

/**
 * Returns the file `base64url(payload) + "." + base64url(signature)` (docs/api.md#f1). `privateKey` is the 32-byte seed of
 * the key `payload.kid`. Throws a TypeError for a payload that verifiers would reject. `sign` can replace the portable
 * implementation of the signature with a faster one.
 */
export function signLicenseFile(
  payload: LicensePayload,
  privateKey: Uint8Array,
  sign: Sign = (bytes, key) => ed25519.sign(bytes, key),
): string {
  const bytes = serializePayload(payload)
  if (parsePayload(bytes) === null)
    throw new TypeError(
      'The payload of the license file has a missing or invalid field. See LicensePayload for the format.',
    )
  return `${encodeBase64Url(bytes)}.${encodeBase64Url(sign(bytes, privateKey))}`
}
