import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { describeBody } from '../../src/endpoints/request-body-errors.ts'
import { type BodyKind, createRequestBody, parseBody } from '../../src/endpoints/request-body.ts'

const KINDS: readonly BodyKind[] = ['validateV1', 'validateV2', 'deactivate']
const out = createRequestBody()

/** Returns the description of a body, which must be invalid. */
function describe(kind: BodyKind, body: string | Uint8Array): string {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  expect(parseBody(kind, bytes, out), String(body)).toBe(false)
  return describeBody(kind, bytes)
}

test.each<[string, BodyKind, string | Uint8Array, string]>([
  ['no body', 'validateV2', '', 'The body is empty. Send a JSON object such as {"license": "..."}.'],
  ['the name of v1 on v2', 'validateV2', '{"licenseKey":"SECRET"}', 'v2 expects `license`; got `licenseKey`.'],
  ['the name of v2 on v1', 'validateV1', '{"license":"SECRET"}', 'v1 expects `licenseKey`; got `license`.'],
  ['the name of v2 on deactivate', 'deactivate', '{"license":"SECRET"}', 'v1 expects `licenseKey`; got `license`.'],
  [
    'no license key',
    'validateV1',
    '{"key":"SECRET"}',
    'The body has no `licenseKey`. Send a JSON object such as {"licenseKey": "..."}.',
  ],
  ['a license key of another type', 'validateV2', '{"license":7}', '`license` must be a string; got a number.'],
  ['a null as license key', 'validateV2', '{"license":null}', '`license` must be a string; got null.'],
  ['an empty license key', 'validateV2', '{"license":""}', '`license` must not be empty; got a string of 0 bytes.'],
  [
    'a lone surrogate',
    'validateV2',
    String.raw`{"license":"\ud800"}`,
    '`license` must be well-formed Unicode; got a string with a lone surrogate.',
  ],
  [
    'a long machine id on v1',
    'validateV1',
    JSON.stringify({ licenseKey: 'SECRET', fingerprint: 'm'.repeat(600) }),
    '`fingerprint` must be at most 512 bytes of UTF-8; got a string of 600 bytes.',
  ],
  [
    'a machine id of another type on v2',
    'validateV2',
    '{"license":"SECRET","hwid":["m"]}',
    '`hwid` must be a machine id of 1 to 512 bytes; got an array.',
  ],
  [
    'no machine id to deactivate',
    'deactivate',
    '{"licenseKey":"SECRET"}',
    '`fingerprint` must be a machine id, unless `ref` is sent; got nothing.',
  ],
  [
    'a ref that is no UUID',
    'deactivate',
    '{"licenseKey":"SECRET","ref":"SECRET"}',
    '`ref` must be a ref from POST /api/v1/machines; got a string of 6 bytes.',
  ],
  [
    '17 levels',
    'validateV2',
    `{"license":"SECRET","x":${'['.repeat(16)}${']'.repeat(16)}}`,
    'The body is nested deeper than 16 levels. Send a JSON object such as {"license": "..."}.',
  ],
  [
    '257 members',
    'validateV2',
    JSON.stringify({ license: 'SECRET', list: Array.from({ length: 255 }, () => ({ a: 1 })) }),
    'The body has more than 256 members. Send a JSON object such as {"license": "..."}.',
  ],
  ['incomplete JSON', 'validateV2', '{"license":"SECRET"', 'The body is not valid JSON.'],
  ['single quotes', 'validateV2', "{'license':'SECRET'}", 'The body is not valid JSON.'],
  [
    'a form',
    'validateV2',
    'license=SECRET&hwid=m',
    'The body is a form, not JSON. Send a JSON object such as {"license": "..."}.',
  ],
  [
    'an array',
    'validateV2',
    '["SECRET"]',
    'The body must be a JSON object; got an array. Send a JSON object such as {"license": "..."}.',
  ],
  [
    'a string',
    'deactivate',
    '"SECRET"',
    'The body must be a JSON object; got a string of 6 bytes. Send a JSON object such as {"licenseKey": "...", "fingerprint": "..."}.',
  ],
  ['Latin-1', 'validateV2', Buffer.from('{"license":"\u00e9"}', 'latin1'), 'The body is not valid UTF-8.'],
  [
    'UTF-16 with a byte order mark',
    'validateV2',
    Buffer.from('\ufeff{"license":"SECRET"}', 'utf16le'),
    'The body is UTF-16. Send it as UTF-8.',
  ],
  [
    'UTF-16 without a byte order mark',
    'validateV2',
    Buffer.from('{"license":"SECRET"}', 'utf16le'),
    'The body is UTF-16. Send it as UTF-8.',
  ],
  [
    'a gzip body without a content-encoding',
    'validateV2',
    Buffer.from([0x1f, 0x8b, 8, 0]),
    'The body is compressed. Send it uncompressed.',
  ],
])('describes %s', (_name, kind, body, expected) => {
  expect(describe(kind, body)).toBe(expected)
})

test('describes random invalid bodies without quoting their values', () => {
  const from = random(5_113)
  const values: unknown[] = ['SECRET', '', null, 7, true, {}, ['SECRET'], '\ud800SECRET', 'SECRET'.repeat(100)]
  const names = ['license', 'licenseKey', 'fingerprint', 'hwid', 'host', 'macAddress', 'hostname', 'SECRET']
  let described = 0
  for (let round = 0; round < 5_000; round++) {
    const kind = from.pick(KINDS)
    const members = names.filter(() => from.chance(0.4)).map((name) => [name, from.pick(values)] as const)
    const bytes = new TextEncoder().encode(JSON.stringify(Object.fromEntries(members)))
    if (parseBody(kind, bytes, out)) continue
    described++
    const text = describeBody(kind, bytes)
    expect(text).not.toMatch(/SECRET|not a valid request/)
    expect(text.length).toBeLessThan(200)
  }
  expect(described).toBeGreaterThan(1_000)
})

test('accepts 16 levels', () => {
  const body = new TextEncoder().encode(`{"license":"a","x":${'['.repeat(15)}${']'.repeat(15)}}`)
  expect(parseBody('validateV2', body, out)).toBe(true)
})

test('accepts 256 members, and any number of colons in strings', () => {
  const more = Array.from({ length: 253 }, () => ({ ':"\\:': '::"::' }))
  const body = new TextEncoder().encode(JSON.stringify({ license: 'K'.padEnd(40, ':'), note: '\\":', more }))
  expect(parseBody('validateV2', body, out)).toBe(true)
})
