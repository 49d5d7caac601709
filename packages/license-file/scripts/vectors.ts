/**
 * Generates the test vectors for implementations in any language: keys, files, times and expected outcomes. OpenSSL creates the signatures,
 * and Node's Buffer creates the encodings, so no code of this package is involved. Invariant: every run generates the same vectors, because
 * the keys are fixed and Ed25519 is deterministic.
 */

import { opensslPublicKey, opensslSign } from './openssl.ts'

/** One case: the expected judgement of `file` for `licenseKey` at `now` with the keys in `keyIds`. */
interface Vector {
  name: string
  file: string
  licenseKey: string
  /** The product of the app; null when the app accepts files of all products. */
  productId: string | null
  /** The machine id of the app; null for an app without machine ids. */
  machineId: string | null
  keyIds: string[]
  now: string
  latestSeen: string | null
  expected: string
}

const LICENSE_KEY = 'K7QX-93FM-TTRW-H2ZD'
const PRODUCT_ID = '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a02'
const NOW = '2026-03-10T12:00:00.000Z'

const PAYLOAD = {
  licenseKey: LICENSE_KEY,
  licenseId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
  customerEmail: 'ada@example.com',
  policy: { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: '2027-03-01T00:00:00.000Z' },
  issuedAt: '2026-03-01T00:00:00.000Z',
  refreshAfter: '2026-03-31T00:00:00.000Z',
}
const { licenseKey, licenseId, ...REST } = PAYLOAD
const WITH_PRODUCT = {
  licenseKey,
  licenseId,
  productId: PRODUCT_ID,
  ...REST,
}
const MACHINE_ID = 'machine-zoë 7'
const FOR_MACHINE = { ...WITH_PRODUCT, machineId: MACHINE_ID }
const ENTITLEMENTS = { edition: 'pro', seats: 5, export: true }
const PERPETUAL = { ...PAYLOAD, policy: { type: 'PERPETUAL', maxMachines: null, expiresAt: null } }
const ENDS_SOON = {
  ...PAYLOAD,
  policy: { ...PAYLOAD.policy, expiresAt: '2026-03-10T12:00:00.000Z' },
  refreshAfter: '2026-03-10T12:00:00.000Z',
}

const IN_GRACE = {
  ...PAYLOAD,
  policy: { ...PAYLOAD.policy, expiresAt: '2026-03-08T00:00:00.000Z', graceEndsAt: '2026-03-11T00:00:00.000Z' },
  refreshAfter: '2026-03-11T00:00:00.000Z',
}
const NO_GRACE_TIME = { ...ENDS_SOON, policy: { ...ENDS_SOON.policy, graceEndsAt: 'later' } }

const SEEDS = { current: seed(1), retired: seed(2), stranger: seed(3) }
type KeyName = keyof typeof SEEDS

/** Returns the content of vectors/license-files.json. */
export function makeVectors(): { keys: object[]; cases: Vector[] } {
  const keys = [SEEDS.current, SEEDS.retired, SEEDS.stranger].map((each) => {
    const publicKey = opensslPublicKey(each)
    return { keyId: keyId(publicKey), algorithm: 'Ed25519', publicKey: publicKey.toString('base64') }
  })
  return { keys, cases: [...goodFiles(), ...timeCases(), ...forgeries(), ...badEncodings(), ...badPayloads()] }
}

function goodFiles(): Vector[] {
  return [
    vector('a subscription', file(PAYLOAD), 'GOOD'),
    vector('a perpetual license on any number of machines', file(PERPETUAL), 'GOOD'),
    vector('signed by a key that was retired by rotation', file(PAYLOAD, 'retired'), 'GOOD'),
    vector('non-ASCII characters in the payload', file({ ...PAYLOAD, customerEmail: 'zoë@exämple.com' }), 'GOOD'),
    vector('a field that this version does not know', file({ ...PAYLOAD, extra: [1, 2] }), 'GOOD'),
    vector('a product', file(WITH_PRODUCT), 'GOOD'),
    vector(
      'a product and entitlements',
      sign(text({ ...WITH_PRODUCT, kid: id('current'), entitlements: ENTITLEMENTS })),
      'GOOD',
    ),
    vector(
      'entitlements of a kind that this version does not know',
      file({ ...PAYLOAD, entitlements: { a: [1] } }),
      'GOOD',
    ),
    vector('fields in another order', sign(JSON.stringify(reversed({ ...PAYLOAD, kid: id('current') }))), 'GOOD'),
    vector(
      'JSON with spaces: the signature covers the bytes',
      sign(JSON.stringify({ ...PAYLOAD, kid: id('current') }, null, 2)),
      'GOOD',
    ),
  ]
}

function timeCases(): Vector[] {
  const at = (now: string, latestSeen: string | null = null) => ({ now, latestSeen })
  return [
    vector('one millisecond before refreshAfter', file(PAYLOAD), 'GOOD', at('2026-03-30T23:59:59.999Z')),
    vector('at refreshAfter', file(PAYLOAD), 'REFRESH_NEEDED', at('2026-03-31T00:00:00.000Z')),
    vector('a perpetual license after refreshAfter', file(PERPETUAL), 'REFRESH_NEEDED', at('2026-04-02T00:00:00.000Z')),
    vector('one millisecond before the expiry', file(ENDS_SOON), 'GOOD', at('2026-03-10T11:59:59.999Z')),
    vector('at the expiry', file(ENDS_SOON), 'FILE_EXPIRED', at('2026-03-10T12:00:00.000Z')),
    vector(
      'one millisecond before the end of the grace period',
      file(IN_GRACE),
      'GOOD',
      at('2026-03-10T23:59:59.999Z'),
    ),
    vector('at the end of the grace period', file(IN_GRACE), 'FILE_EXPIRED', at('2026-03-11T00:00:00.000Z')),
    vector('a grace period that ends at no time', file(NO_GRACE_TIME), 'FILE_EXPIRED', at('2026-03-10T12:00:00.000Z')),
    vector('the clock 5 minutes before issuedAt', file(PAYLOAD), 'GOOD', at('2026-02-28T23:55:00.000Z')),
    vector('the clock further before issuedAt', file(PAYLOAD), 'CLOCK_SET_BACK', at('2026-02-28T23:54:59.999Z')),
    vector(
      'the clock 5 minutes before the latest time seen',
      file(PAYLOAD),
      'GOOD',
      at(NOW, '2026-03-10T12:05:00.000Z'),
    ),
    vector('the clock further before it', file(PAYLOAD), 'CLOCK_SET_BACK', at(NOW, '2026-03-10T12:05:00.001Z')),
    vector(
      'set back from after the expiry',
      file(ENDS_SOON),
      'CLOCK_SET_BACK',
      at('2026-03-10T11:00:00.000Z', '2026-03-10T12:30:00.000Z'),
    ),
  ]
}

function forgeries(): Vector[] {
  const [payload = '', signature = ''] = file(PAYLOAD).split('.')
  const longer = text({ ...PAYLOAD, refreshAfter: '2036-03-31T00:00:00.000Z', kid: id('current') })
  const flipped = Buffer.from(signature, 'base64url')
  flipped[0] = (flipped[0] ?? 0) ^ 1
  return [
    vector('another license', file({ ...PAYLOAD, licenseKey: 'AAAA-BBBB-CCCC-DDDD' }), 'WRONG_LICENSE'),
    vector(
      'the license key in lower case',
      file({ ...PAYLOAD, licenseKey: LICENSE_KEY.toLowerCase() }),
      'WRONG_LICENSE',
    ),
    vector('the product of the app', file(WITH_PRODUCT), 'GOOD', { productId: PRODUCT_ID }),
    vector('another product', file(WITH_PRODUCT), 'WRONG_PRODUCT', { productId: `${PRODUCT_ID.slice(0, -1)}3` }),
    vector('a file without a product for an app with one', file(PAYLOAD), 'WRONG_PRODUCT', { productId: PRODUCT_ID }),
    vector(
      'a product that is no text, for an app with one',
      file({ ...WITH_PRODUCT, productId: [PRODUCT_ID] }),
      'WRONG_PRODUCT',
      { productId: PRODUCT_ID },
    ),
    vector(
      'another license and another product',
      file({ ...WITH_PRODUCT, licenseKey: 'AAAA-BBBB-CCCC-DDDD', productId: 'other' }),
      'WRONG_LICENSE',
      { productId: PRODUCT_ID },
    ),
    vector('another product after the expiry', file({ ...ENDS_SOON, productId: 'other' }), 'WRONG_PRODUCT', {
      productId: PRODUCT_ID,
      now: '2026-03-10T12:00:00.000Z',
    }),
    vector('the machine of the app', file(FOR_MACHINE), 'GOOD', { machineId: MACHINE_ID }),
    vector('another machine', file(FOR_MACHINE), 'WRONG_MACHINE', { machineId: MACHINE_ID.toUpperCase() }),
    vector('a file for a machine for an app without machine ids', file(FOR_MACHINE), 'WRONG_MACHINE'),
    vector('a file without a machine for an app with one', file(WITH_PRODUCT), 'GOOD', { machineId: MACHINE_ID }),
    vector('another product and another machine', file({ ...FOR_MACHINE, productId: 'other' }), 'WRONG_PRODUCT', {
      productId: PRODUCT_ID,
      machineId: 'other',
    }),
    vector('another machine after the expiry', file({ ...ENDS_SOON, machineId: MACHINE_ID }), 'WRONG_MACHINE', {
      machineId: 'other',
      now: '2026-03-10T12:00:00.000Z',
    }),
    vector("another organization's key", file(PAYLOAD, 'stranger'), 'UNKNOWN_KEY'),
    vector(
      "another organization's key under a known kid",
      sign(text({ ...PAYLOAD, kid: id('current') }), 'stranger'),
      'BAD_SIGNATURE',
    ),
    vector('a kid that names another known key', sign(text({ ...PAYLOAD, kid: id('retired') })), 'BAD_SIGNATURE'),
    vector('a key that the app does not trust', file(PAYLOAD), 'UNKNOWN_KEY', { keyIds: [id('retired')] }),
    vector('no trusted key at all', file(PAYLOAD), 'UNKNOWN_KEY', { keyIds: [] }),
    vector('a payload changed after signing', `${encode(longer)}.${signature}`, 'BAD_SIGNATURE'),
    vector('one bit of the signature flipped', `${payload}.${flipped.toString('base64url')}`, 'BAD_SIGNATURE'),
    vector('the signature of another file', `${payload}.${file(PERPETUAL).split('.')[1] ?? ''}`, 'BAD_SIGNATURE'),
    vector(
      'a signature with a second spelling (S plus the group order)',
      `${payload}.${plusOrder(signature)}`,
      'BAD_SIGNATURE',
    ),
  ]
}

function badEncodings(): Vector[] {
  const good = file(PAYLOAD)
  const [payload = '', signature = ''] = good.split('.')
  const bad = (name: string, altered: string) => vector(name, altered, 'MALFORMED')
  return [
    bad('empty', ''),
    bad('no dot', payload),
    bad('nothing before the dot', `.${signature}`),
    bad('nothing after the dot', `${payload}.`),
    bad('three parts', `${good}.${signature}`),
    bad('a dot at the end', `${good}.`),
    bad('a line break at the end', `${good}\n`),
    bad('a space before it', ` ${good}`),
    bad('a line break inside', `${good.slice(0, 64)}\n${good.slice(64)}`),
    bad('padded', `${payload}.${signature}==`),
    bad(
      'the standard alphabet',
      `${payload}.${Buffer.from(signature, 'base64url').toString('base64').replaceAll('=', '')}`,
    ),
    bad('unused bits set in the last character', `${payload}.${withTrailingBit(signature)}`),
    bad(
      'a signature one byte short',
      `${payload}.${Buffer.from(signature, 'base64url').subarray(1).toString('base64url')}`,
    ),
  ]
}

function badPayloads(): Vector[] {
  const kid = id('current')
  const bad = (name: string, json: string | Buffer) => vector(name, sign(json), 'MALFORMED')
  const without = (field: string) =>
    text(Object.fromEntries(Object.entries({ ...PAYLOAD, kid }).filter(([name]) => name !== field)))
  const policy = (change: object) => text({ ...PAYLOAD, policy: { ...PAYLOAD.policy, ...change }, kid })
  return [
    bad('not JSON', 'license'),
    bad('an array', '[]'),
    bad('null', 'null'),
    bad('a byte order mark', `\uFEFF${text({ ...PAYLOAD, kid })}`),
    bad(
      'not UTF-8',
      Buffer.concat([Buffer.from(text({ ...PAYLOAD, kid }).slice(0, -2)), Buffer.from([0xff, 0x22, 0x7d])]),
    ),
    ...[...Object.keys(PAYLOAD), 'kid'].map((field) => bad(`no ${field}`, without(field))),
    bad('an unknown policy type', policy({ type: 'FOREVER' })),
    bad('a machine limit of zero', policy({ maxMachines: 0 })),
    bad('a machine limit as text', policy({ maxMachines: '5' })),
    bad('a perpetual license that expires', policy({ type: 'PERPETUAL' })),
    bad('a subscription that does not expire', policy({ expiresAt: null })),
    bad('a time without milliseconds', text({ ...PAYLOAD, issuedAt: '2026-03-01T00:00:00Z', kid })),
    bad('a time in another zone', text({ ...PAYLOAD, refreshAfter: '2026-03-31T00:00:00.000+00:00', kid })),
    bad('a day that does not exist', text({ ...PAYLOAD, refreshAfter: '2026-02-30T00:00:00.000Z', kid })),
    bad('a time as a number', text({ ...PAYLOAD, refreshAfter: 1774915200000, kid })),
    bad('a machine that is no text', text({ ...PAYLOAD, machineId: [MACHINE_ID], kid })),
    bad('an empty machine', text({ ...PAYLOAD, machineId: '', kid })),
    bad('a machine that is null', text({ ...PAYLOAD, machineId: null, kid })),
    bad('an empty kid', text({ ...PAYLOAD, kid: '' })),
  ]
}

function vector(name: string, altered: string, expected: string, given: Partial<Vector> = {}): Vector {
  const keyIds = [id('current'), id('retired')]
  return {
    name,
    file: altered,
    licenseKey: LICENSE_KEY,
    productId: null,
    machineId: null,
    keyIds,
    now: NOW,
    latestSeen: null,
    ...given,
    expected,
  }
}

/** Returns a well-formed file: compact JSON with the kid of the key that signs it. */
function file(payload: object, key: KeyName = 'current'): string {
  return sign(text({ ...payload, kid: id(key) }), key)
}

function sign(json: string | Buffer, key: KeyName = 'current'): string {
  const bytes = Buffer.from(json)
  return `${bytes.toString('base64url')}.${opensslSign(bytes, SEEDS[key]).toString('base64url')}`
}

const ids = new Map<KeyName, string>()

function id(key: KeyName): string {
  const known = ids.get(key) ?? keyId(opensslPublicKey(SEEDS[key]))
  ids.set(key, known)
  return known
}

function keyId(spki: Buffer): string {
  return spki.subarray(12, 20).toString('hex')
}

function seed(fill: number): Buffer {
  return Buffer.alloc(32, fill)
}

function text(payload: object): string {
  return JSON.stringify(payload)
}

function encode(json: string): string {
  return Buffer.from(json).toString('base64url')
}

function reversed(payload: object): object {
  return Object.fromEntries(Object.entries(payload).toReversed())
}

/** Sets an unused bit of the last character. The 86 characters have four bits more than the 64 bytes of a signature. */
function withTrailingBit(signature: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return signature.slice(0, -1) + (alphabet[alphabet.indexOf(signature.slice(-1)) + 1] ?? '')
}

/** Replaces S by S + L, where L is the group order. A verifier that does not require S < L accepts both signatures. */
function plusOrder(signature: string): string {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const bytes = Buffer.from(signature, 'base64url')
  let sum = order
  for (const [position, byte] of bytes.subarray(32).entries()) sum += BigInt(byte) << BigInt(8 * position)
  for (let position = 32; position < 64; position++, sum >>= 8n) bytes[position] = Number(sum & 0xffn)
  return bytes.toString('base64url')
}
