import { expect, test } from 'vitest'

import { targetOf } from '../src/pages/licenses/job-target.ts'

test('selects the licenses of a filter without its absent conditions', () => {
  const filter = { status: 'expired', expiresBefore: '2031-01-01T00:00:00.000Z' }
  expect(targetOf({ ...filter, email: null, within: null })).toEqual({ filter })
})

test('selects all licenses explicitly without a condition', () => {
  expect(targetOf({ status: null, keyPrefix: null })).toEqual({ all: true })
})

test.each([{ status: 'unknown' }, { keyPrefix: ' ' }, { within: '30' }])(
  'returns null for %j, which no job has',
  (filter) => {
    expect(targetOf({ ...filter, email: null })).toBeNull()
  },
)
