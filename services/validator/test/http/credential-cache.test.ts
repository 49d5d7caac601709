import { expect, test } from 'vitest'

import { CredentialCache } from '../../src/http/credential-cache.ts'

/** Returns the row, the generation and the time of an entry, or null. */
function read(cache: CredentialCache, header: string): number[] | null {
  const entry = cache.find(header)
  return entry < 0 ? null : [cache.rowOf(entry), cache.generationOf(entry), cache.usedAtMsOf(entry)]
}

test('keeps the headers in use when more headers arrive than fit, and forgets the others', () => {
  const cache = new CredentialCache(4)
  cache.set('used', 1, 2, 3)
  for (let i = 0; i < 20; i++) {
    cache.set(`other ${i}`, 100 + i, 0, 0)
    expect(read(cache, 'used')).toEqual([1, 2, 3])
    expect(read(cache, `other ${i}`)).toEqual([100 + i, 0, 0])
  }
  expect(read(cache, 'other 0')).toBeNull()
})

test('finds every header of the last generation', () => {
  const cache = new CredentialCache(4)
  for (let i = 0; i < 8; i++) cache.set(String(i), i, i, i)
  expect(Array.from({ length: 4 }, (_, i) => read(cache, String(i + 4)))).toEqual([4, 5, 6, 7].map((i) => [i, i, i]))
})

test('replaces the entry of a header', () => {
  const cache = new CredentialCache(2)
  cache.set('a', 1, 1, 1)
  cache.setUsedAtMs(cache.find('a'), 9)
  expect(read(cache, 'a')).toEqual([1, 1, 9])
  cache.set('a', 2, 3, 4)
  expect(read(cache, 'a')).toEqual([2, 3, 4])
})
