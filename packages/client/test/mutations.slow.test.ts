/** Tests that ten thousand altered files are rejected. The alterations are seeded, so that failures are reproducible. */

import { generateKeyPair, publicKeyToSpki, signLicenseFile } from '@keyward/license-file'
import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { DAY_MS } from '../contract-suite/service/service.ts'
import { createLicenseClient, memoryStorage } from '../src/index.ts'

const key = generateKeyPair()
const stranger = { ...generateKeyPair(), keyId: key.keyId }
const licenseKey = 'K7QX-93FM-TTRW-H2ZD'
const payload = {
  licenseKey,
  licenseId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
  customerEmail: 'ada@example.com',
  policy: { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: new Date(Date.now() + 300 * DAY_MS).toISOString() },
  issuedAt: new Date(Date.now() - DAY_MS).toISOString(),
  refreshAfter: new Date(Date.now() + 20 * DAY_MS).toISOString(),
  kid: key.keyId,
} as const
const good = signLicenseFile(payload, key.privateKey)
const [goodPayload = '', goodSignature = ''] = good.split('.')
const others = [
  signLicenseFile({ ...payload, licenseKey: 'OTHER' }, key.privateKey),
  signLicenseFile(payload, stranger.privateKey),
]
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n'.split('')

const { int, pick } = random(20_260_301)
const position = () => int(good.length)

const slips: (() => string)[] = [
  () => replaced(position(), 1, pick(ALPHABET)),
  () => replaced(position(), 0, pick(ALPHABET)),
  () => replaced(position(), 1 + int(8), ''),
  () => good.slice(0, position()),
  () => swapped(position(), position()),
]
const forgeries: (() => string)[] = [
  () => withFlippedBit(0),
  () => withFlippedBit(1),
  () => `${pick(others).split('.')[0] ?? ''}.${goodSignature}`,
  () => `${goodPayload}.${pick(others).split('.')[1] ?? ''}`,
  () => spliced(pick(others), position()),
  () => edited({ refreshAfter: new Date(Date.now() + int(10_000) * DAY_MS).toISOString() }),
  () => edited({ policy: { ...payload.policy, maxMachines: 6 + int(10_000) } }),
  () => pick(others),
]
// Slips outnumber forgeries, because most slips are rejected before the signature check, which takes a millisecond.
const mutations = [...Array.from({ length: 8 }, () => slips).flat(), ...forgeries]

test('rejects 10,000 altered files', async () => {
  const client = createLicenseClient({
    baseUrl: 'http://127.0.0.1:9',
    apiKey: 'kwk_test',
    publicKeys: [{ keyId: key.keyId, publicKey: publicKeyToSpki(key.publicKey) }],
    licenseKey,
    storage: memoryStorage(),
  })
  expect(await client.importFile(good)).toMatchObject({ imported: true })
  const accepted: string[] = []
  let tried = 0
  while (tried < 10_000) {
    const altered = pick(mutations)()
    // An import ignores blanks around a file.
    if (altered.trim() === good) continue
    tried++
    if ((await client.importFile(altered)).imported) accepted.push(altered)
  }
  expect(accepted).toEqual([])
})

function replaced(at: number, length: number, text: string): string {
  return good.slice(0, at) + text + good.slice(at + length)
}

function swapped(one: number, other: number): string {
  const characters = good.split('')
  ;[characters[one], characters[other]] = [characters[other] ?? '', characters[one] ?? '']
  return characters.join('')
}

function withFlippedBit(part: 0 | 1): string {
  const parts = [goodPayload, goodSignature].map((text) => Buffer.from(text, 'base64url'))
  const bytes = parts[part] ?? Buffer.alloc(0)
  const bit = int(bytes.length * 8)
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return parts.map((each) => each.toString('base64url')).join('.')
}

function spliced(other: string, at: number): string {
  return good.slice(0, at) + other.slice(at)
}

function edited(change: object): string {
  return `${Buffer.from(JSON.stringify({ ...payload, ...change })).toString('base64url')}.${goodSignature}`
}
