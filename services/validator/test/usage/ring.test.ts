import { type Check, createVerdict } from '@keyward/engine'
import { expect, test } from 'vitest'

import { createCheckRequest } from '../../src/endpoints/checks.ts'
import { createRing, RingReader, RingWriter } from '../../src/usage/ring.ts'

test('reads at most the given number of records, and continues with the next one', () => {
  const shared = createRing()
  const writer = new RingWriter(shared, () => expect.unreachable())
  const reader = new RingReader(shared)
  const check: Check = createCheckRequest()
  for (let n = 0; n < 10; n++) writer.record(check, createVerdict(), n, Date.now(), null)
  writer.publish()
  const codes: number[] = []
  const drain = (most?: number) => reader.drain(({ code }) => codes.push(code), most)
  expect([drain(4), drain(4), drain(4), drain()]).toEqual([4, 4, 2, 0])
  expect(codes).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})
