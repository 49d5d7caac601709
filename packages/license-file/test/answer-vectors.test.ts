/** Verifies the stored vectors of signed responses, and compares them with newly generated ones. OpenSSL creates the signatures of both. */

import { expect, test } from 'vitest'

import { makeAnswerVectors } from '../scripts/answer-vectors.ts'
import { hasOpenssl } from '../scripts/openssl.ts'
import { spkiToPublicKey, verifyAnswer } from '../src/index.ts'
import vectors from '../vectors/signed-answers.json' with { type: 'json' }

test.each(vectors.cases)('$name: $expected', async (vector) => {
  const verified = await verifyAnswer({
    ...vector,
    request: Buffer.from(vector.request),
    response: Buffer.from(vector.response),
    key: { keyId: vector.keyId, publicKey: spkiToPublicKey(vector.publicKey) ?? new Uint8Array() },
    latestSignedMs: vector.latestSigned === null ? 0 : Date.parse(vector.latestSigned),
  })
  expect(verified.ok ? 'GOOD' : verified.reason).toBe(vector.expected)
})

test.skipIf(!hasOpenssl())('the stored vectors equal newly generated ones (skipped without OpenSSL 3)', () => {
  expect(JSON.parse(JSON.stringify(makeAnswerVectors()))).toEqual(vectors)
})
