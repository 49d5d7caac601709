import { expect, test } from 'vitest'

import { ByteBudget } from '../../src/admission/byte-budget.ts'

test('counts the bytes that bodies have sent, and rejects those beyond the budget until a body is released', () => {
  let rejected = 0
  const budget = new ByteBudget(100, 'imports', () => rejected++)
  const slow = Array.from({ length: 50 }, () => budget.hold())
  for (const body of slow) body.take(1)
  const large = budget.hold()
  large.take(40)
  large.take(10)
  expect(() => budget.hold().take(1)).toThrow('Too many imports are being received at once.')
  expect(rejected).toBe(1)
  large.release()
  large.release()
  const next = budget.hold()
  next.take(50)
  expect(() => next.take(1)).toThrow('Too many imports')
  for (const body of slow) body.release()
  next.take(50)
})
