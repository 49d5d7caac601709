import { expect, test } from 'vitest'

import { RejectionPacer } from '../../src/http/rejection-pacer.ts'

test('delays the error responses of one owner beyond the first 200 in a second', () => {
  const pacer = new RejectionPacer()
  const delays = Array.from({ length: 202 }, (_, n) => pacer.delayMs('a', n))
  expect(delays.slice(0, 200)).toEqual(Array.from({ length: 200 }, () => 0))
  expect(delays.slice(200)).toEqual([250, 250])
})

test('delays no error response of another owner', () => {
  const pacer = new RejectionPacer()
  for (let n = 0; n < 300; n++) pacer.delayMs('a', n)
  expect(pacer.delayMs('b', 301)).toBe(0)
})

test('sends error responses without a delay again after a second', () => {
  const pacer = new RejectionPacer()
  for (let n = 0; n < 300; n++) pacer.delayMs('a', 0)
  expect(pacer.delayMs('a', 999)).toBe(250)
  expect(pacer.delayMs('a', 1_000)).toBe(0)
})
