import { MAX_LICENSE_KEY_BYTES } from '@keyward/contract'
import { random, type Random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { PlainBodyParser } from '../../src/endpoints/request-body-fast-path.ts'
import { type BodyKind, createRequestBody, type RequestBody, parseBody } from '../../src/endpoints/request-body.ts'

const ROUNDS = process.env['KEYWARD_LONG'] ? 1_000_000 : 40_000
const KINDS: readonly BodyKind[] = ['validateV1', 'validateV2', 'deactivate']
const encoder = new TextEncoder()

function resultOf(body: RequestBody): object {
  return {
    key:
      body.licenseKeyLength > MAX_LICENSE_KEY_BYTES
        ? 'too long'
        : Buffer.from(body.licenseKey.subarray(0, body.licenseKeyLength)).toString('latin1'),
    machine: Buffer.from(body.machineId.subarray(0, body.machineIdLength)).toString('latin1'),
    ref: body.ref,
    hostname: body.hostname,
    wantsEntitlements: body.wantsEntitlements,
    kid: body.kid,
  }
}

const fast = createRequestBody()
const parser = new PlainBodyParser(fast)
const reference = createRequestBody()

/** Returns whether the fast path read the body. If so, its result must equal the result of the reference. */
function compare(kind: BodyKind, body: Uint8Array): boolean {
  if (!parser.parse(kind, body)) return false
  expect(parseBody(kind, body, reference), Buffer.from(body).toString('latin1')).toBe(true)
  expect(resultOf(fast), Buffer.from(body).toString('latin1')).toEqual(resultOf(reference))
  return true
}

const NAMES: Record<BodyKind, readonly string[]> = {
  validateV1: ['licenseKey', 'fingerprint', 'hostname', 'include', 'nonce', 'kid'],
  validateV2: ['license', 'fingerprint', 'hwid', 'host', 'macAddress', 'include', 'nonce', 'kid'],
  deactivate: ['licenseKey', 'fingerprint', 'ref', 'nonce', 'kid'],
}
const OTHER_NAMES = ['other', 'License', 'licenseKey', 'license', '__proto__', '']
const VALUES = [
  '"A1B2-C3D4-E5F6-G7H8"',
  '"machine 7"',
  '""',
  'null',
  '42',
  'true',
  '{}',
  '["a"]',
  '"é"',
  '"\\u0041"',
  '"\\ud800"',
  '"a\\"b"',
  '"~\x7f"',
  `"${'k'.repeat(128)}"`,
  `"${'k'.repeat(129)}"`,
  `"${'m'.repeat(512)}"`,
  `"${'m'.repeat(513)}"`,
  `"${'é'.repeat(257)}"`,
]
const INCLUDED = [
  '["entitlements"]',
  '[ "entitlements"\n]',
  '["entitlements","entitlements"]',
  '[]',
  '["other"]',
  'null',
]
const SIGNATURES: Readonly<Record<string, string>> = { nonce: '"c2lnbmVkIGFuc3dlcnM-_w"', kid: '"8a88e3dd7409f195"' }
const SPACES = ['', '', '', ' ', '\n', '\t \r\n', '\u00a0']

function write(from: Random, kind: BodyKind): string {
  const space = (): string => (from.chance(0.2) ? from.pick(SPACES) : '')
  const isSigned = from.chance(0.2)
  const known = NAMES[kind].filter((name) => isSigned || !(name in SIGNATURES))
  const names = from.shuffle(known).slice(from.int(2))
  if (from.chance(0.2)) names.push(from.pick(OTHER_NAMES))
  if (from.chance(0.1)) names.push(from.pick(names))
  const members = names.map((name) => {
    const included = INCLUDED.slice(0, from.chance(0.8) ? 2 : INCLUDED.length)
    const signature = SIGNATURES[name]
    const usual = name === 'include' ? included : signature === undefined ? VALUES.slice(0, 3) : [signature]
    const value = from.chance(0.9) ? from.pick(usual) : from.pick(VALUES)
    return `${space()}"${name}"${space()}:${space()}${value}${space()}`
  })
  return `${space()}{${members.join(',')}}${space()}`
}

function mutate(from: Random, text: string): Uint8Array {
  const bytes = [...encoder.encode(text)]
  for (let edits = from.int(3); edits > 0; edits--) {
    const at = from.int(bytes.length + 1)
    const byte = from.chance(0.5) ? from.pick([34, 44, 58, 92, 123, 125, 0, 32, 127, 128, 255]) : from.int(256)
    if (from.chance(0.4)) bytes.splice(at, 1)
    else if (from.chance(0.5)) bytes.splice(at, 0, byte)
    else bytes[Math.min(at, bytes.length - 1)] = byte
  }
  return Uint8Array.from(bytes)
}

test(`has the same result on the fast path as the reference for ${ROUNDS} random bodies`, () => {
  const from = random(4_2024)
  let plain = 0
  for (let round = 0; round < ROUNDS; round++) {
    const kind = from.pick(KINDS)
    if (compare(kind, mutate(from, write(from, kind)))) plain++
  }
  expect(plain).toBeGreaterThan(ROUNDS / 25)
}, 120_000)

test('has the same result as the reference for every byte at every position in a word', () => {
  for (const length of [1, 4, 7, 8, 19])
    for (let at = 0; at < length; at++)
      for (let byte = 0; byte < 256; byte++) {
        const body = encoder.encode(`{"license":"${'K'.repeat(length)}","fingerprint":"m-1"}`)
        body[12 + at] = byte
        compare('validateV2', body)
      }
  expect(compare('validateV2', encoder.encode('{"license":"K~\x7f","fingerprint":"m-1"}'))).toBe(true)
})

test('reads no bytes of an earlier body', () => {
  const body = encoder.encode('{"license":"A1B2-C3D4-E5F6-G7H8","fingerprint":"machine-1"}')
  for (let length = 0; length < body.length; length++) {
    expect(compare('validateV2', body)).toBe(true)
    expect(parser.parse('validateV2', body.subarray(0, length)), String(length)).toBe(false)
  }
})

test('reads common bodies on the fast path', () => {
  for (const [kind, text] of [
    ['validateV2', '{"license":"A1B2-C3D4","fingerprint":"m-1"}'],
    ['validateV2', '{ "license": "A1B2-C3D4", "hwid": "m-1", "host": "h" }'],
    ['validateV2', '{"license":"A1B2-C3D4"}'],
    ['validateV1', '{"licenseKey":"A1B2-C3D4","fingerprint":"m-1","hostname":"build-7"}\n'],
    ['validateV2', '{"license":"A1B2-C3D4","fingerprint":"m-1","include":["entitlements"]}'],
    ['validateV1', '{"include": [ "entitlements" ], "licenseKey":"A1B2-C3D4"}'],
    ['deactivate', '{"fingerprint":"m-1","licenseKey":"A1B2-C3D4"}'],
  ] as const)
    expect(compare(kind, encoder.encode(text)), text).toBe(true)
})

test('rejects invalid bodies, and members that are unknown, repeated, escaped or not ASCII, on the fast path', () => {
  for (const text of [
    '',
    '[]',
    '{}',
    '{"license":"a","license":"b"}',
    '{"license":"a","extra":"b"}',
    '{"license":"é"}',
    '{"license":"\\u0041"}',
    '{"license":7}',
    '{"license":"a"}x',
    '{"license":"a",}',
    '{"license":"a"',
    '{"license":"a"}{"license":"a"}',
  ])
    expect(parser.parse('validateV2', encoder.encode(text)), text).toBe(false)
})
