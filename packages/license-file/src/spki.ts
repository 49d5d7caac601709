// The X.509 form in which public keys travel. Without the mathematics of keys, so that who only hands them on need not load it.

import { decodeBase64, encodeBase64 } from './base64.ts'

// SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING { 32 bytes } }: the whole of the DER that stands before the key.
const SPKI_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00)
const KEY_BYTES = 32

/**
 * Standard base64 of the key as X.509 SubjectPublicKeyInfo (API document, Public key). OpenSSL opens it as it is.
 * Throws a RangeError when the key is not 32 bytes.
 */
export function publicKeyToSpki(publicKey: Uint8Array): string {
  if (publicKey.length !== KEY_BYTES) throw new RangeError('An Ed25519 public key is 32 bytes.')
  const spki = new Uint8Array(SPKI_PREFIX.length + KEY_BYTES)
  spki.set(SPKI_PREFIX)
  spki.set(publicKey, SPKI_PREFIX.length)
  return encodeBase64(spki)
}

/** The 32 bytes in such a text, which may be no key; null when the text has another form. */
export function spkiToBytes(text: string): Uint8Array | null {
  const spki = decodeBase64(text)
  if (spki === null || spki.length !== SPKI_PREFIX.length + KEY_BYTES) return null
  if (SPKI_PREFIX.some((byte, position) => spki[position] !== byte)) return null
  return spki.slice(SPKI_PREFIX.length)
}
