// Ed25519 keys: making them, naming them, and the X.509 form in which public keys travel.
// Invariant: a key id is a function of the public key, so the same key always has the same id.

import { ed25519 } from '@noble/curves/ed25519.js'

import { decodeBase64, encodeBase64 } from './base64.ts'

/** A public key that files may be checked with. `keyId` is the `kid` of the files that it signed. */
export interface VerificationKey {
  keyId: string
  /** 32 bytes. */
  publicKey: Uint8Array
}

/** A new signing key. `privateKey` is the 32-byte seed of RFC 8032; keep it encrypted. */
export interface KeyPair extends VerificationKey {
  privateKey: Uint8Array
}

// SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING { 32 bytes } }: the whole of the DER that stands before the key.
const SPKI_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00)
const KEY_BYTES = 32
const KEY_ID_BYTES = 8

/** A new random key pair with its id. */
export function generateKeyPair(): KeyPair {
  return keyPairFromPrivateKey(ed25519.utils.randomSecretKey())
}

/** The key pair of a 32-byte private key. Throws when the private key is not 32 bytes. */
export function keyPairFromPrivateKey(privateKey: Uint8Array): KeyPair {
  const publicKey = ed25519.getPublicKey(privateKey)
  return { keyId: keyIdOf(publicKey), publicKey, privateKey }
}

/** The id of a public key: its first 8 bytes as 16 lower-case hex digits. */
export function keyIdOf(publicKey: Uint8Array): string {
  let id = ''
  for (const byte of publicKey.subarray(0, KEY_ID_BYTES)) id += byte.toString(16).padStart(2, '0')
  return id
}

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

/** The 32 bytes of a public key in the form of `publicKeyToSpki`, or null when the text is anything else. */
export function spkiToPublicKey(text: string): Uint8Array | null {
  const spki = decodeBase64(text)
  if (spki === null || spki.length !== SPKI_PREFIX.length + KEY_BYTES) return null
  if (SPKI_PREFIX.some((byte, position) => spki[position] !== byte)) return null
  const publicKey = spki.slice(SPKI_PREFIX.length)
  return ed25519.utils.isValidPublicKey(publicKey, false) ? publicKey : null
}
