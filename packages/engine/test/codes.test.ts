import { expect, test } from 'vitest'

import { CODE, CODES } from '../src/index.ts'

test('every code has the number that is its place in the list of names', () => {
  expect(Object.entries(CODE)).toEqual(CODES.map((name, number) => [name, number]))
})
