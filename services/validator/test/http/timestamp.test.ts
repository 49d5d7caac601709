import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { TIMESTAMP_BYTES, writeTimestamp } from '../../src/http/timestamp.ts'

const decoder = new TextDecoder()

function written(ms: number): string | null {
  const out = new Uint8Array(TIMESTAMP_BYTES + 2).fill(46)
  if (!writeTimestamp(ms, out, 1)) return null
  expect([out[0], out[TIMESTAMP_BYTES + 1]]).toEqual([46, 46])
  return decoder.decode(out.subarray(1, 1 + TIMESTAMP_BYTES))
}

test('formats times at the boundaries of days, months, leap years and the calendar', () => {
  for (const text of [
    '0000-01-01T00:00:00.000Z',
    '0000-02-29T23:59:59.999Z',
    '1582-10-15T12:00:00.000Z',
    '1900-02-28T23:59:59.999Z',
    '1900-03-01T00:00:00.000Z',
    '1969-12-31T23:59:59.999Z',
    '1970-01-01T00:00:00.000Z',
    '2000-02-29T00:00:00.001Z',
    '2024-02-29T23:59:59.999Z',
    '2038-01-19T03:14:08.000Z',
    '2100-02-28T23:59:59.999Z',
    '2100-03-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
  ])
    expect(written(Date.parse(text))).toBe(text)
})

test('equals toISOString for random times of the years 0 to 9999', () => {
  const { next } = random(11)
  for (let round = 0; round < 50_000; round++) {
    const ms = Math.floor(-62_167_219_200_000 + next() * 315_569_520_000_000)
    expect(written(ms)).toBe(new Date(ms).toISOString())
  }
})

test('returns false for times outside the years 0 to 9999', () => {
  for (const ms of [-62_167_219_200_001, 253_402_300_800_000, Infinity, -Infinity, Number.NaN])
    expect(written(ms)).toBeNull()
})
