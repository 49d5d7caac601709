import { expect, test } from 'vitest'

import { CODE, CODES } from '../src/index.ts'

test('the number of every code is its index in the list of names', () => {
  expect(Object.entries(CODE)).toEqual(CODES.map((name, number) => [name, number]))
})
