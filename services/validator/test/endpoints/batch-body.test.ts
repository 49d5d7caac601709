/** Compares the parser of batches with a reference, which uses JSON.parse and the parser of single requests. */

import { random, type Random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { BATCH_LIMITS, BatchBody, describeBatch } from '../../src/endpoints/batch-body.ts'
import { createRequestBody, parseBody, type RequestBody } from '../../src/endpoints/request-body.ts'

const ROUNDS = process.env['KEYWARD_LONG'] ? 300_000 : 4_000
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })
const requests = Array.from({ length: 100 }, createRequestBody)
const batch = new BatchBody(requests)
const single = createRequestBody()

function resultOf(body: RequestBody): object {
  const { licenseKeyLength, machineIdLength, wantsEntitlements } = body
  return {
    key: licenseKeyLength > 128 ? 'too long' : Buffer.from(body.licenseKey).toString('latin1', 0, licenseKeyLength),
    machine: Buffer.from(body.machineId).toString('latin1', 0, machineIdLength),
    wantsEntitlements,
  }
}

let referenceKid: string | null = null

/** Sets `referenceKid`. Returns the fields of each check, with null for a malformed check. Returns null when the body is not a batch. */
function reference(bytes: Uint8Array): (object | null)[] | null {
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || !('checks' in value) || !Array.isArray(value.checks)) return null
  if (value.checks.length < 1 || value.checks.length > 100) return null
  const signature = 'nonce' in value || 'kid' in value ? { ...value, license: 'x' } : { license: 'x' }
  if (!parseBody('validateV2', encoder.encode(JSON.stringify(signature)), single)) return null
  referenceKid = single.kid
  return value.checks.map((check: unknown) =>
    parseBody('validateV2', encoder.encode(JSON.stringify(check)), single) ? resultOf(single) : null,
  )
}

function read(bytes: Uint8Array): (object | null)[] | null {
  if (!batch.read(bytes)) return null
  const checks = requests.slice(0, batch.count)
  return checks.map((request, n) => (batch.errors[n] === null ? resultOf(request) : null))
}

const CHECKS = [
  '{"license":"A1B2-C3D4","fingerprint":"m-1"}',
  '{"license":"A1B2-C3D4","hwid":"m-2","include":["entitlements"]}',
  '{"license":"A1B2-C3D4"}',
  '{ "license" : "k" }',
  '{"license":"é","fingerprint":"\\u0041"}',
  '{"license":"a]}","other":{"deep":[1,{"x":"}]\\""}]}}',
  '{"license":"a","license":"b"}',
  `{"license":"${'k'.repeat(129)}"}`,
  `{"license":"a","fingerprint":"${'m'.repeat(513)}"}`,
  '{"license":""}',
  '{"license":7}',
  '{}',
  '[]',
  'null',
  'true',
  '-1.5e3',
  '"text"',
  '[{"license":"a"}]',
]
const OUTER = ['"other":1', '"other":{"checks":[1]}', '"":[]', '"ch\\u0065cks":[{"license":"z"}]', '"checks":7']
const SIGNATURES = [
  '"nonce":"c2lnbmVkIGFuc3dlcnM-_w"',
  '"kid":"8a88e3dd7409f195"',
  '"nonce":1',
  '"kid":"a b"',
  '"kid":null',
]
const SPACES = ['', '', '', ' ', '\n\t\r ']

function write(from: Random): string {
  const space = (): string => (from.chance(0.2) ? from.pick(SPACES) : '')
  const checks = Array.from({ length: 1 + from.int(5) }, () => space() + from.pick(CHECKS) + space())
  const members = [`${space()}"checks"${space()}:${space()}[${checks.join(',')}]${space()}`]
  if (from.chance(0.2)) members.push(from.pick(OUTER))
  if (from.chance(0.1)) members.push(from.pick(OUTER))
  if (from.chance(0.3)) members.push(...SIGNATURES.slice(0, 2))
  if (from.chance(0.1)) members.push(from.pick(SIGNATURES))
  return `${from.chance(0.05) ? '\ufeff' : ''}${space()}{${from.shuffle(members).join(',')}}${space()}`
}

function mutate(from: Random, text: string): Uint8Array {
  const bytes = [...encoder.encode(text)]
  for (let edits = from.chance(0.5) ? 0 : 1 + from.int(2); edits > 0; edits--) {
    const at = from.int(bytes.length + 1)
    const byte = from.chance(0.7) ? from.pick([34, 44, 58, 91, 92, 93, 123, 125, 32, 48, 0xef, 0xff]) : from.int(256)
    if (from.chance(0.4)) bytes.splice(at, 1)
    else if (from.chance(0.5)) bytes.splice(at, 0, byte)
    else bytes[Math.min(at, bytes.length - 1)] = byte
  }
  return Uint8Array.from(bytes)
}

test(`reads ${ROUNDS} random batches like the reference`, () => {
  const from = random(19)
  let accepted = 0
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = mutate(from, write(from))
    const text = Buffer.from(bytes).toString('latin1')
    const result = read(bytes)
    expect(result, text).toEqual(reference(bytes))
    expect(batch.kid, text).toBe(result === null ? null : referenceKid)
    if (result !== null) accepted++
    else if (describeBatch(bytes).length < 10) throw new Error(`There is no description of ${text}`)
  }
  expect(accepted).toBeGreaterThan(ROUNDS / 3)
})

test('accepts 1 to 100 checks', () => {
  const bytesOf = (count: number): Uint8Array =>
    encoder.encode(JSON.stringify({ checks: Array.from({ length: count }, () => ({ license: 'a' })) }))
  for (const count of [1, 100]) {
    expect(batch.read(bytesOf(count))).toBe(true)
    expect(batch.count).toBe(count)
  }
  for (const count of [0, 101]) {
    expect(batch.read(bytesOf(count))).toBe(false)
    expect(describeBatch(bytesOf(count))).toBe(`\`checks\` must be an array of 1 to 100 checks; got ${count}.`)
  }
})

test('describes an invalid batch without quoting the values in the body', () => {
  for (const [body, text] of [
    ['', /^The body is empty/],
    ['[]', /must be a JSON object; got an array/],
    ['{}', /^The body has no `checks`\. Send/],
    ['{"license":"secret"}', /^The body has no `checks`/],
    ['{"checks":"secret"}', /^`checks` must be an array of 1 to 100 checks; got another type/],
    ['{"checks":[{"license":"secret"}', /^The body is not valid JSON/],
  ] as const) {
    expect(batch.read(encoder.encode(body)), body).toBe(false)
    expect(describeBatch(encoder.encode(body))).toMatch(text)
    expect(describeBatch(encoder.encode(body))).not.toContain('secret')
  }
})

const members = (count: number, from = 0): string =>
  Array.from({ length: count }, (_, i) => `"n${from + i}":0`).join(',')

test('limits the members of each check to 256, and those of the whole batch to 4096', () => {
  const check = (count: number): string => `{"license":"a",${members(count)}}`
  expect(read(encoder.encode(`{"checks":[${check(255)},{"license":"a"},${check(256)}]}`))).toEqual([
    { key: 'a', machine: '', wantsEntitlements: false },
    { key: 'a', machine: '', wantsEntitlements: false },
    null,
  ])
  expect(batch.errors[2]).toContain('more than 256 members')
  const full = Array.from({ length: BATCH_LIMITS.members / 256 }, () => check(255)).join(',')
  expect(batch.read(encoder.encode(`{"checks":[${full}]}`))).toBe(true)
  for (const body of [
    `{"checks":[${full},${check(0).replace(',', '')}],"x":{"y":0}}`,
    `{"checks":[${full},${check(1)}]}`,
  ]) {
    expect(batch.read(encoder.encode(body))).toBe(false)
    expect(describeBatch(encoder.encode(body))).toBe('The body has more than 4096 members.')
  }
})

test('limits the nesting of each check to 16 levels, and that of the other members too', () => {
  const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
  const check = (levels: number): string => `{"license":"a","x":${deep(levels - 1)}}`
  const result = read(encoder.encode(`{"checks":[${check(16)},${check(17)},{"license":"a"}],"x":${deep(15)}}`))
  expect(result?.map((one) => one !== null)).toEqual([true, false, true])
  const body = encoder.encode(`{"checks":[{"license":"a"}],"x":${deep(16)}}`)
  expect([batch.read(body), describeBatch(body)]).toEqual([false, 'The body is nested deeper than 16 levels.'])
})

test('parses or rejects nested and repetitive bodies of 128 KiB', () => {
  const most = 128 * 1024
  for (const body of [
    '['.repeat(most),
    '{"checks":['.padEnd(most, '['),
    '{"checks":['.padEnd(most, '{}'),
    '{"checks":["'.padEnd(most, '\\"'),
    '"'.repeat(most),
    ' '.repeat(most),
  ]) {
    expect(batch.read(encoder.encode(body)), body.slice(0, 20)).toBe(false)
    expect(describeBatch(encoder.encode(body)), body.slice(0, 20)).toMatch(/^.{10,}$/)
  }
  const nested = `${'['.repeat(60_000)}${']'.repeat(60_000)}`
  expect(read(encoder.encode(`{"checks":[${nested},{"license":"a"}]}`))?.map((check) => check !== null)).toEqual([
    false,
    true,
  ])
  expect(read(encoder.encode(`{"checks":[{"license":"a","x":${nested}}]}`))?.[0]).toBeNull()
  expect(batch.errors[0]).toContain('nested deeper than 16 levels')
})
