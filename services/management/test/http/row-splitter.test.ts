/** Tests that the rows of an import are split as `JSON.parse` would read them, regardless of the pieces in which the bytes arrive. */

import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { ApiError } from '../../src/http/problem.ts'
import { RowSplitter } from '../../src/http/row-splitter.ts'

interface Split {
  frame: unknown
  rows: unknown[]
  count: number
}

function split(body: string | Buffer, pieces: number[] = [], maxRows = 1_000): Split | string {
  const splitter = new RowSplitter({ name: 'rules', maxRows, maxRowBytes: 16 * 1024 })
  const bytes = Buffer.from(body)
  try {
    let start = 0
    for (const length of pieces) {
      splitter.push(bytes.subarray(start, start + length))
      start += length
    }
    splitter.push(bytes.subarray(start))
    const { frame, rows, count } = splitter.end()
    return { frame, rows: rows.map((row): unknown => JSON.parse(Buffer.from(row).toString())), count }
  } catch (error) {
    if (error instanceof ApiError) return error.code
    if (error instanceof SyntaxError) return 'MALFORMED_JSON'
    throw error
  }
}

test.each<[string, Split | string]>([
  ['{"rules":[1,{"a":[2]},"x"]}', { frame: { rules: [] }, rows: [1, { a: [2] }, 'x'], count: 3 }],
  [' { "rules" : [ ] , "b" : [1] } ', { frame: { rules: [], b: [1] }, rows: [], count: 0 }],
  ['{"rules":["],[\\"",{"rules":[1]}]}', { frame: { rules: [] }, rows: ['],["', { rules: [1] }], count: 2 }],
  ['{"a":{"rules":[1]}}', { frame: { a: { rules: [1] } }, rows: [], count: 0 }],
  ['{"x\\"rules":[1]}', { frame: { 'x"rules': [1] }, rows: [], count: 0 }],
  ['{"rules":[1],"rules":[2,3]}', { frame: { rules: [] }, rows: [2, 3], count: 2 }],
  ['{"r\\u0075les":[1]}', { frame: { rules: [1] }, rows: [], count: 0 }],
  ['["rules",[1]]', { frame: ['rules', [1]], rows: [], count: 0 }],
  ['7', { frame: 7, rows: [], count: 0 }],
  ['{"rules":[1,]}', 'MALFORMED_JSON'],
  ['{"rules":[,1]}', 'MALFORMED_JSON'],
  ['{"rules":[ , ]}', 'MALFORMED_JSON'],
  ['{"rules":[1}', 'MALFORMED_JSON'],
  ['{"rules":[1', 'MALFORMED_JSON'],
  ['{"rules":[1 2]}', 'MALFORMED_JSON'],
  ['{"rules":[{]}]}', 'MALFORMED_JSON'],
  ['{"rules":[1]]}', 'MALFORMED_JSON'],
  [`{"rules":["${'x'.repeat(16 * 1024)}"]}`, 'PAYLOAD_TOO_LARGE'],
  [`{"rules":[],"x":"${'x'.repeat(64 * 1024)}"}`, 'PAYLOAD_TOO_LARGE'],
])('splits %s', (body, expected) => {
  expect(split(body)).toEqual(expected)
})

test('counts the rows beyond the limit without keeping them', () => {
  expect(split(`{"rules":[${'0,'.repeat(4_999)}0]}`, [], 10)).toEqual({
    frame: { rules: [] },
    rows: Array.from({ length: 10 }, () => 0),
    count: 5_000,
  })
})

test('reads every sequence of tokens as JSON.parse does, in any pieces', () => {
  const tokens = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"rules"',
    '"a"',
    '"\\""',
    '1',
    'null',
    ' ',
    '{"rules":[',
    ']}',
    '"é😀"',
  ]
  let wellFormed = 0
  for (let seed = 1; seed <= 40_000; seed++) {
    const { int, pick } = random(seed)
    const middle = Array.from({ length: 1 + int(7) }, () => pick(tokens)).join('')
    const body = int(4) === 0 ? middle : `{"rules":[${middle}]}`
    const pieces = Array.from({ length: int(4) }, () => int(8))
    let expected: unknown = 'MALFORMED_JSON'
    try {
      expected = JSON.parse(body)
      wellFormed++
    } catch {
      // Most sequences are malformed, so `expected` stays MALFORMED_JSON.
    }
    const got = split(body, pieces)
    const whole =
      typeof got === 'object' && got.rows.length > 0 && typeof got.frame === 'object'
        ? { ...got.frame, rules: got.rows }
        : typeof got === 'object'
          ? got.frame
          : got
    expect(whole, `seed ${seed}: ${body}`).toEqual(expected)
  }
  expect(wellFormed).toBeGreaterThan(2_000)
})
