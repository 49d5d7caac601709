/** Judges the stored test vectors, and compares them with newly generated ones. OpenSSL creates the signatures of both. */

import { expect, test } from 'vitest'

import { hasOpenssl, opensslVerifies } from '../scripts/openssl.ts'
import { makeVectors } from '../scripts/vectors.ts'
import { judgeLicenseFile, keyIdOf, spkiToPublicKey, type VerificationKey } from '../src/index.ts'
import vectors from '../vectors/license-files.json' with { type: 'json' }

const openssl = hasOpenssl()

const keys = vectors.keys.map(({ keyId, publicKey }): VerificationKey => {
  const bytes = spkiToPublicKey(publicKey)
  if (bytes === null) throw new Error(`The public key ${keyId} of the vectors is unreadable.`)
  return { keyId, publicKey: bytes }
})

test.each(vectors.cases)('$name: $expected', (vector) => {
  const judged = judgeLicenseFile(vector.file, {
    keys: keys.filter(({ keyId }) => vector.keyIds.includes(keyId)),
    licenseKey: vector.licenseKey,
    productId: vector.productId,
    machineId: vector.machineId,
    nowMs: Date.parse(vector.now),
    latestSeenMs: vector.latestSeen === null ? 0 : Date.parse(vector.latestSeen),
  })
  expect(judged.ok ? 'GOOD' : judged.reason).toBe(vector.expected)
})

test('derives the key id of each test vector from its public key', () => {
  for (const key of keys) expect(keyIdOf(key.publicKey)).toBe(key.keyId)
})

test.skipIf(!openssl)('the stored vectors equal newly generated ones (skipped without OpenSSL 3)', () => {
  expect(JSON.parse(JSON.stringify(makeVectors()))).toEqual(vectors)
})

test.skipIf(!openssl)('OpenSSL accepts the signature of every good vector (skipped without OpenSSL 3)', () => {
  for (const { file, name } of vectors.cases.filter(({ expected }) => expected === 'GOOD')) {
    const [payload = '', signature = ''] = file.split('.')
    const bytes = Buffer.from(payload, 'base64url')
    const kid = keys.find(({ keyId }) => bytes.includes(keyId))?.keyId
    const spki = vectors.keys.find(({ keyId }) => keyId === kid)?.publicKey ?? ''
    expect(opensslVerifies(bytes, Buffer.from(signature, 'base64url'), Buffer.from(spki, 'base64')), name).toBe(true)
  }
})
