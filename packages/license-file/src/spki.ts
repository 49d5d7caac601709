/**
 * Converts public keys to and from X.509 SubjectPublicKeyInfo. The module does not load the curve arithmetic, which programs
 * that only convert keys do not need.
 */

import { decodeBase64, encodeBase64 } from './base64.ts'

// The DER bytes that precede the key in SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING { 32 bytes } }.
const SPKI_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00)
const KEY_BYTES = 32

/**
 * Returns the key as standard base64 of its X.509 SubjectPublicKeyInfo (docs/api.md#f6), which OpenSSL reads unchanged.
 * Throws a RangeError when the key is not 32 bytes long.
 */
export function publicKeyToSpki(publicKey: Uint8Array): string {
  if (publicKey.length !== KEY_BYTES)
    throw new RangeError(`An Ed25519 public key has ${KEY_BYTES} bytes; got ${publicKey.length}.`)
  const spki = new Uint8Array(SPKI_PREFIX.length + KEY_BYTES)
  spki.set(SPKI_PREFIX)
  spki.set(publicKey, SPKI_PREFIX.length)
  return encodeBase64(spki)
}

/**
 * Reads the 32 bytes of a public key from the text of `publicKeyToSpki`, without checking that they are a point of the curve. Returns null
 * for any other text.
 */
export function spkiToBytes(text: string): Uint8Array | null {
  const spki = decodeBase64(text)
  if (spki === null || spki.length !== SPKI_PREFIX.length + KEY_BYTES) return null
  if (SPKI_PREFIX.some((byte, position) => spki[position] !== byte)) return null
  return spki.slice(SPKI_PREFIX.length)
}
