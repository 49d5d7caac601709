import { afterEach, expect, test } from 'vitest'

import { endOf, lastDayOf, longDay, setZone, usualEnds } from '../src/parts/days.ts'

afterEach(() => setZone(null))

/** The ends of days: of a winter and a summer, of the changes to and from summer time, of a change at midnight, and beside the date line. */
const ENDS = [
  ['Europe/Zurich', '2028-01-31', '2028-01-31T23:00:00.000Z'],
  ['Europe/Zurich', '2028-07-31', '2028-07-31T22:00:00.000Z'],
  ['Europe/Zurich', '2027-03-28', '2027-03-28T22:00:00.000Z'],
  ['Europe/Zurich', '2027-10-31', '2027-10-31T23:00:00.000Z'],
  ['America/Los_Angeles', '2028-01-31', '2028-02-01T08:00:00.000Z'],
  ['Africa/Cairo', '2027-04-29', '2027-04-29T22:00:00.000Z'],
  ['Pacific/Kiritimati', '2027-12-31', '2027-12-31T10:00:00.000Z'],
  ['Asia/Kolkata', '2027-12-31', '2027-12-31T18:30:00.000Z'],
  ['UTC', '2027-12-31', '2028-01-01T00:00:00.000Z'],
] as const

test.each(ENDS)('in %s, the day %s ends at %s', (zone, day, end) => {
  setZone(zone)
  expect(endOf(day)).toBe(end)
  expect(lastDayOf(end)).toBe(day)
  expect(longDay(day).timeZone).toBe(zone)
})

test('a text that is no day stays as it is', () => {
  for (const text of ['', '2027', 'tomorrow']) expect(endOf(text)).toBe(text)
})

test('the month after January 31 ends on the last day of February', () => {
  setZone('America/Los_Angeles')
  expect(usualEnds(endOf('2092-01-31'))).toEqual({ month: '2092-02-29', year: '2093-01-31', endOfYear: '2092-12-31' })
})
