import { expect, test } from 'vitest'

import { hashPair, scramble } from '../../src/memory/bits.ts'

test.each([
  ['first', (chosen: number) => hashPair(chosen, 7, 0x1234567)],
  ['second', (chosen: number) => hashPair(7, chosen, 0x1234567)],
])('fills all buckets evenly when a caller without the seed chooses the %s of two words', (_, hashOf) => {
  const perBucket = new Uint32Array(128)
  for (let word = 0; word < 1_000_000; word++) {
    // An attacker can compute words whose hashes without the seed end in the same bits.
    if ((scramble(word) & 127) === 0) perBucket[hashOf(word) & 127]! += 1
  }
  const mean = perBucket.reduce((sum, count) => sum + count) / perBucket.length
  expect(mean).toBeGreaterThan(50)
  expect(Math.max(...perBucket)).toBeLessThan(2 * mean)
})
