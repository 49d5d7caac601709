/** Ed25519 keys for OpenSSL, which signs in a tenth of the time of the portable implementation. */

import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'

/** The bytes before the seed of an Ed25519 key in the PKCS #8 form of RFC 8410. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Returns the private key of a 32-byte seed. */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })
}

/** Returns the 32 bytes of the public key in base64url. */
export function publicKeyText(privateKey: KeyObject): string {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' })
  if (x === undefined) throw new TypeError('The key is not an Ed25519 key.')
  return x
}
