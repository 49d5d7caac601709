// Ed25519 keys: making them, naming them, and taking in those of others.
// Invariant: a key id is a function of the public key, so the same key always has the same id.

import { ed25519 } from '@noble/curves/ed25519.js'

import { spkiToBytes } from './spki.ts'

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

/** The 32 bytes of a public key in the form of `publicKeyToSpki`, or null when the text is anything else. */
export function spkiToPublicKey(text: string): Uint8Array | null {
  const publicKey = spkiToBytes(text)
  return publicKey !== null && ed25519.utils.isValidPublicKey(publicKey, false) ? publicKey : null
}
