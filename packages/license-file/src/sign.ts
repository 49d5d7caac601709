/** Signs offline license files. The signature covers the exact payload bytes that the file contains. */

import { ed25519 } from '@noble/curves/ed25519.js'

import { encodeBase64Url } from './base64.ts'
import { type LicensePayload, parsePayload, serializePayload } from './payload.ts'

/** Returns the Ed25519 signature of the bytes. `privateKey` is the 32-byte seed. */
export type Sign = (bytes: Uint8Array, privateKey: Uint8Array) => Uint8Array

/**
 * Returns the file `base64url(payload) + "." + base64url(signature)` (docs/api.md#f1).
 * `privateKey` is the 32-byte seed of the key that `payload.kid` names. Throws a TypeError for a payload that no
 * verifier would accept, so that such a file is never issued. `sign` replaces the portable implementation by a faster one.
 */
export function signLicenseFile(
  payload: LicensePayload,
  privateKey: Uint8Array,
  sign: Sign = (bytes, key) => ed25519.sign(bytes, key),
): string {
  const bytes = serializePayload(payload)
  if (parsePayload(bytes) === null) throw new TypeError('The payload of a license file is not well formed.')
  return `${encodeBase64Url(bytes)}.${encodeBase64Url(sign(bytes, privateKey))}`
}
