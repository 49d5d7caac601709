import { expect, test } from 'vitest'

import { hasOpenssl, opensslNewPublicKey, opensslPublicKey } from '../scripts/openssl.ts'
import { generateKeyPair, keyIdOf, publicKeyToSpki, spkiToPublicKey } from '../src/index.ts'

test('derives an id of 16 hexadecimal digits from the public key', () => {
  const { keyId, publicKey } = generateKeyPair()
  expect(keyId).toMatch(/^[0-9a-f]{16}$/)
  expect(keyIdOf(publicKey)).toBe(keyId)
  expect(generateKeyPair().keyId).not.toBe(keyId)
})

test('converts a public key to X.509 and back', () => {
  const { publicKey } = generateKeyPair()
  expect(spkiToPublicKey(publicKeyToSpki(publicKey))).toEqual(publicKey)
})

test('throws for a public key of the wrong length', () => {
  expect(() => publicKeyToSpki(new Uint8Array(31))).toThrow(RangeError)
})

test.skipIf(!hasOpenssl())('writes the same X.509 bytes as OpenSSL (skipped without OpenSSL 3)', () => {
  const { privateKey, publicKey } = generateKeyPair()
  expect(publicKeyToSpki(publicKey)).toBe(opensslPublicKey(privateKey).toString('base64'))
})

test.skipIf(!hasOpenssl())('returns null for keys of other algorithms (skipped without OpenSSL 3)', () => {
  for (const algorithm of ['X25519', 'ED448', 'RSA']) {
    expect(spkiToPublicKey(opensslNewPublicKey(algorithm).toString('base64')), algorithm).toBeNull()
  }
})

test('returns null for text that is not the canonical encoding of a key', () => {
  const spki = publicKeyToSpki(generateKeyPair().publicKey)
  const bytes = Buffer.from(spki, 'base64')
  for (const text of [
    '',
    ` ${spki}`,
    `${spki}\n`,
    spki.replace('=', ''),
    bytes.subarray(12).toString('base64'),
    Buffer.concat([bytes, Buffer.from([0])]).toString('base64'),
    `-----BEGIN PUBLIC KEY-----\n${spki}\n-----END PUBLIC KEY-----`,
    // These 32 bytes are not a point of the curve.
    Buffer.concat([bytes.subarray(0, 12), Buffer.alloc(32, 0xff)]).toString('base64'),
  ]) {
    expect(spkiToPublicKey(text), text).toBeNull()
  }
})
