import { expect, test } from 'vitest'

import { hasOpenssl, opensslVerifies } from '../scripts/openssl.ts'
import {
  FILE_LIFETIME_MS,
  generateKeyPair,
  keyPairFromPrivateKey,
  parsePayload,
  publicKeyToSpki,
  refreshAfterMs,
  serializePayload,
  signLicenseFile,
  verifyLicenseFile,
} from '../src/index.ts'
import { file, key, payload } from './fixtures.ts'

test('a signed file verifies with the key that its kid names', () => {
  expect(verifyLicenseFile(file, [generateKeyPair(), key])).toEqual({ ok: true, payload })
})

test.skipIf(!hasOpenssl())('OpenSSL verifies a file signed here (skipped without OpenSSL 3)', () => {
  const [bytes, signature] = file.split('.').map((part) => Buffer.from(part, 'base64url'))
  const spki = Buffer.from(publicKeyToSpki(key.publicKey), 'base64')
  expect(opensslVerifies(bytes ?? Buffer.alloc(0), signature ?? Buffer.alloc(0), spki)).toBe(true)
  expect(opensslVerifies(Buffer.from('other'), signature ?? Buffer.alloc(0), spki)).toBe(false)
})

test('the payload is compact JSON with its fields in the documented order, whatever the order of the object', () => {
  const { kid, policy, ...rest } = payload
  const { expiresAt, ...limits } = policy
  const shuffled = { kid, policy: { expiresAt, ...limits }, ...rest }
  expect(new TextDecoder().decode(serializePayload(shuffled))).toBe(
    '{"licenseKey":"K7QX-93FM-TTRW-H2ZD","licenseId":"0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01",' +
      '"customerEmail":"zoë@example.com",' +
      '"policy":{"type":"SUBSCRIPTION","maxMachines":5,"expiresAt":"2027-03-01T00:00:00.000Z"},' +
      `"issuedAt":"2026-03-01T00:00:00.000Z","refreshAfter":"2026-03-31T00:00:00.000Z","kid":"${key.keyId}"}`,
  )
})

test('only known fields are signed', () => {
  const withMore = { ...payload, secret: 'x' }
  expect(serializePayload(withMore)).toEqual(serializePayload(payload))
})

test('what is written is read back', () => {
  expect(parsePayload(serializePayload(payload))).toEqual(payload)
})

test('a payload that no verifier would accept is not signed', () => {
  for (const bad of [
    { ...payload, kid: '' },
    { ...payload, issuedAt: '2026-03-01' },
    { ...payload, policy: { ...payload.policy, maxMachines: 0 } },
    { ...payload, policy: { ...payload.policy, expiresAt: null } },
  ]) {
    expect(() => signLicenseFile(bad, key.privateKey)).toThrow(TypeError)
  }
})

test('signing is deterministic, and a stored private key gives the same key pair', () => {
  expect(signLicenseFile(payload, key.privateKey)).toBe(file)
  expect(keyPairFromPrivateKey(key.privateKey)).toEqual(key)
})

test('a file is good for 30 days, or until the license expires if that is sooner', () => {
  const issued = Date.parse('2026-03-01T00:00:00.000Z')
  expect(refreshAfterMs(issued, null)).toBe(Date.parse('2026-03-31T00:00:00.000Z'))
  expect(refreshAfterMs(issued, issued + 5000)).toBe(issued + 5000)
  expect(refreshAfterMs(issued, issued + FILE_LIFETIME_MS + 1)).toBe(issued + FILE_LIFETIME_MS)
})
