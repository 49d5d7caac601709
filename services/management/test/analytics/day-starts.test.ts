import { expect, test } from 'vitest'

import { dayStarts } from '../../src/analytics/day-starts.ts'

const HOUR_MS = 3_600_000
const starts = (from: string, to: string, timeZone: string): string[] =>
  dayStarts(Date.parse(from), Date.parse(to), timeZone).map((ms) => new Date(ms).toISOString().replace(':00.000Z', 'Z'))

test('begins days at midnight of the time zone', () => {
  expect(starts('2026-11-24T05:00Z', '2026-11-26T00:00Z', 'UTC')).toEqual(['2026-11-24T00:00Z', '2026-11-25T00:00Z'])
  expect(starts('2026-11-24T00:00Z', '2026-11-24T23:01Z', 'Europe/Berlin')).toEqual([
    '2026-11-23T23:00Z',
    '2026-11-24T23:00Z',
  ])
  expect(starts('2026-11-24T19:00Z', '2026-11-24T20:00Z', 'Asia/Kolkata')).toEqual(['2026-11-24T18:30Z'])
  expect(starts('2026-11-24T18:00Z', '2026-11-24T20:00Z', 'Asia/Kathmandu')).toEqual([
    '2026-11-23T18:15Z',
    '2026-11-24T18:15Z',
  ])
})

test('has days of 23 and 25 hours when clocks change, also at midnight, and omits a day that a zone skipped', () => {
  const hours = (from: string, to: string, timeZone: string) => {
    const list = dayStarts(Date.parse(from), Date.parse(to), timeZone)
    return list.slice(1).map((ms, i) => (ms - list[i]!) / HOUR_MS)
  }
  expect(hours('2026-03-28T12:00Z', '2026-03-31T12:00Z', 'Europe/Berlin')).toEqual([24, 23, 24])
  expect(hours('2026-10-24T12:00Z', '2026-10-27T12:00Z', 'Europe/Berlin')).toEqual([24, 25, 24])
  // Clocks are set from 0:00 to 1:00.
  expect(hours('2026-03-28T12:00Z', '2026-03-30T12:00Z', 'Asia/Beirut')).toEqual([24, 23])
  // The zone had no 30 December 2011.
  expect(starts('2011-12-29T12:00Z', '2012-01-01T00:00Z', 'Pacific/Apia')).toEqual([
    '2011-12-29T10:00Z',
    '2011-12-30T10:00Z',
    '2011-12-31T10:00Z',
  ])
})
