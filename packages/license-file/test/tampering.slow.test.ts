import { ed25519 } from '@noble/curves/ed25519.js'
import { expect, test } from 'vitest'

import { encodeBase64Url } from '../src/base64.ts'
import { generateKeyPair, serializePayload, signLicenseFile, verifyLicenseFile } from '../src/index.ts'
import { file, key, payload } from './fixtures.ts'

test('rejects a file in which any single bit of the text is flipped', () => {
  const accepted: string[] = []
  for (let position = 0; position < file.length; position++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = String.fromCharCode(file.charCodeAt(position) ^ (1 << bit))
      const altered = file.slice(0, position) + flipped + file.slice(position + 1)
      if (verifyLicenseFile(altered, [key]).ok) accepted.push(altered)
    }
  }
  expect(accepted).toEqual([])
})

test('rejects a canonically encoded file in which any single bit of the payload or signature is flipped', () => {
  const parts = file.split('.').map((part) => Buffer.from(part, 'base64url'))
  const accepted: string[] = []
  for (const part of parts) {
    for (let bit = 0; bit < part.length * 8; bit++) {
      part[bit >> 3] = (part[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      const altered = parts.map((each) => each.toString('base64url')).join('.')
      if (verifyLicenseFile(altered, [key]).ok) accepted.push(altered)
      part[bit >> 3] = (part[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    }
  }
  expect(accepted).toEqual([])
})

test("rejects another organization's key, even with the same id", () => {
  const stranger = generateKeyPair()
  expect(verifyLicenseFile(file, [stranger])).toEqual({ ok: false, reason: 'UNKNOWN_KEY' })
  expect(verifyLicenseFile(file, [{ ...stranger, keyId: key.keyId }])).toEqual({ ok: false, reason: 'BAD_SIGNATURE' })
})

test('rejects a file whose kid names a key that did not sign it', () => {
  const second = generateKeyPair()
  const renamed = signLicenseFile({ ...payload, kid: second.keyId }, key.privateKey)
  expect(verifyLicenseFile(renamed, [key, second])).toEqual({ ok: false, reason: 'BAD_SIGNATURE' })
  expect(verifyLicenseFile(renamed, [key])).toEqual({ ok: false, reason: 'UNKNOWN_KEY' })
})

test('rejects signatures by a key of small order, for which one signature is valid for every message', () => {
  const neutral = ed25519.Point.ZERO.toBytes()
  const weak = { keyId: 'weak', publicKey: neutral }
  const bytes = serializePayload({ ...payload, kid: 'weak' })
  const signature = new Uint8Array(64)
  signature.set(neutral)
  expect(ed25519.verify(signature, bytes, neutral, { zip215: true })).toBe(true)
  const forged = `${encodeBase64Url(bytes)}.${encodeBase64Url(signature)}`
  expect(verifyLicenseFile(forged, [weak])).toEqual({ ok: false, reason: 'BAD_SIGNATURE' })
})

test('returns BAD_SIGNATURE instead of throwing for a key of the wrong length', () => {
  const short = { ...key, publicKey: key.publicKey.subarray(1) }
  expect(verifyLicenseFile(file, [short])).toEqual({ ok: false, reason: 'BAD_SIGNATURE' })
})

test('returns MALFORMED for a text of a million characters', () => {
  expect(verifyLicenseFile(file.padEnd(1_000_000, 'A'), [key])).toEqual({ ok: false, reason: 'MALFORMED' })
})
