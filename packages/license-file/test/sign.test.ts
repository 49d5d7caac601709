import { expect, test } from 'vitest'

import { hasOpenssl, opensslVerifies } from '../scripts/openssl.ts'
import {
  FILE_LIFETIME_MS,
  MAX_FILE_LIFETIME_MS,
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

test('verifies a signed file with the key that its kid names', () => {
  expect(verifyLicenseFile(file, [generateKeyPair(), key])).toEqual({ ok: true, payload })
})

test.skipIf(!hasOpenssl())('signs files that OpenSSL verifies (skipped without OpenSSL 3)', () => {
  const [bytes, signature] = file.split('.').map((part) => Buffer.from(part, 'base64url'))
  const spki = Buffer.from(publicKeyToSpki(key.publicKey), 'base64')
  expect(opensslVerifies(bytes ?? Buffer.alloc(0), signature ?? Buffer.alloc(0), spki)).toBe(true)
  expect(opensslVerifies(Buffer.from('other'), signature ?? Buffer.alloc(0), spki)).toBe(false)
})

test('serializes compact JSON with the fields in the documented order', () => {
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

test('serializes the product id after the license id, and non-empty entitlements at the end', () => {
  const { licenseKey, licenseId, ...rest } = payload
  const entitlements = { edition: 'pro', seats: 5, export: true } as const
  const whole = { ...rest, entitlements, licenseKey, licenseId, productId: 'p' }
  const text = new TextDecoder().decode(serializePayload(whole))
  expect(text).toContain(`"licenseId":"${licenseId}","productId":"p","customerEmail"`)
  expect(text).toMatch(/"kid":"[0-9a-f]{16}","entitlements":\{"edition":"pro","seats":5,"export":true\}\}$/)
  expect(parsePayload(serializePayload(whole))).toEqual(whole)
  expect(serializePayload({ ...payload, entitlements: {} })).toEqual(serializePayload(payload))
})

test('treats an invalid product id or invalid entitlements as absent', () => {
  const parsed = (more: object): unknown =>
    parsePayload(new TextEncoder().encode(JSON.stringify({ ...payload, ...more })))
  for (const more of [{ productId: 7 }, { productId: '' }, { entitlements: [] }, { entitlements: { a: 1.5 } }])
    expect(parsed(more)).toEqual(payload)
})

test('omits unknown fields from the signed bytes', () => {
  const withMore = { ...payload, secret: 'x' }
  expect(serializePayload(withMore)).toEqual(serializePayload(payload))
})

test('parsePayload returns the payload that serializePayload encoded', () => {
  expect(parsePayload(serializePayload(payload))).toEqual(payload)
})

test('throws for a payload that verifiers would reject', () => {
  for (const bad of [
    { ...payload, kid: '' },
    { ...payload, issuedAt: '2026-03-01' },
    { ...payload, policy: { ...payload.policy, maxMachines: 0 } },
    { ...payload, policy: { ...payload.policy, expiresAt: null } },
  ]) {
    expect(() => signLicenseFile(bad, key.privateKey)).toThrow(TypeError)
  }
})

test('signs deterministically with a key pair derived from the stored private key', () => {
  expect(signLicenseFile(payload, key.privateKey)).toBe(file)
  expect(keyPairFromPrivateKey(key.privateKey)).toEqual(key)
})

test('returns a refreshAfter after the lifetime of 30 days or of the policy, or at the end of the license if that is sooner', () => {
  const issued = Date.parse('2026-03-01T00:00:00.000Z')
  expect(refreshAfterMs(issued, null)).toBe(Date.parse('2026-03-31T00:00:00.000Z'))
  expect(refreshAfterMs(issued, issued + 5000)).toBe(issued + 5000)
  expect(refreshAfterMs(issued, issued + FILE_LIFETIME_MS + 1)).toBe(issued + FILE_LIFETIME_MS)
  expect(refreshAfterMs(issued, issued + 5000, 4000)).toBe(issued + 4000)
  expect(refreshAfterMs(issued, issued + 5000, MAX_FILE_LIFETIME_MS)).toBe(issued + 5000)
})
