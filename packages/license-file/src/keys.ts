/**
 * Generates Ed25519 keys, derives their ids and reads public keys. Invariant: the id of a key depends only on its public key.
 */

import { ed25519 } from '@noble/curves/ed25519.js'

import { spkiToBytes } from './spki.ts'

/** A public key with which files are verified. `keyId` is the `kid` in these files. */
export interface VerificationKey {
  keyId: string
  /** The 32 bytes of the key. */
  publicKey: Uint8Array
}

/** A signing key. `privateKey` is the 32-byte seed of RFC 8032, which the caller must store encrypted. */
export interface KeyPair extends VerificationKey {
  privateKey: Uint8Array
}

const KEY_ID_BYTES = 8

/** Generates a random key pair. */
export function generateKeyPair(): KeyPair {
  return keyPairFromPrivateKey(ed25519.utils.randomSecretKey())
}

/** Derives the key pair of a private key. Throws when the private key is not 32 bytes long. */
export function keyPairFromPrivateKey(privateKey: Uint8Array): KeyPair {
  const publicKey = ed25519.getPublicKey(privateKey)
  return { keyId: keyIdOf(publicKey), publicKey, privateKey }
}

/** Returns the id of a public key: its first 8 bytes as 16 lower-case hexadecimal digits. */
export function keyIdOf(publicKey: Uint8Array): string {
  let id = ''
  for (const byte of publicKey.subarray(0, KEY_ID_BYTES)) id += byte.toString(16).padStart(2, '0')
  return id
}

/** Reads a public key in the format of `publicKeyToSpki`. Returns its 32 bytes, or null for any other text. */
export function spkiToPublicKey(text: string): Uint8Array | null {
  const publicKey = spkiToBytes(text)
  return publicKey !== null && ed25519.utils.isValidPublicKey(publicKey, false) ? publicKey : null
}
