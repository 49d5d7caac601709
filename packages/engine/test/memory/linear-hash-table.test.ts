import { expect, test } from 'vitest'

import { LinearHashTable, NONE } from '../../src/memory/linear-hash-table.ts'
import { SharedRegion } from '../../src/memory/shared-memory.ts'
import { random } from '../support/random.ts'
import { worlds } from '../support/worlds.ts'

/**
 * The size of a region. It exceeds the need of every table here, and allocators do not fill a region of this size with
 * zeros.
 */
const REGION_BYTES = 64 * 2 ** 20

function makeTable(entryWords: 2 | 3): LinearHashTable {
  const table = new LinearHashTable({
    primary: new SharedRegion(new SharedArrayBuffer(REGION_BYTES)),
    overflow: new SharedRegion(new SharedArrayBuffer(REGION_BYTES)),
    control: new Int32Array(16),
    header: 0,
    shapes: new SharedRegion(new SharedArrayBuffer(64), 0),
    shape: 0,
    entryWords,
    fill: 4,
  })
  table.initialize()
  return table
}

/** Returns every entry with this hash as a text of its second and third word. */
function entriesOf(table: LinearHashTable, hash: number, entryWords: number): string[] {
  const found: string[] = []
  for (let at = table.first(hash); at !== NONE; at = table.next(hash, at)) {
    found.push(`${table.word(at, 1)} ${entryWords === 3 ? table.word(at, 2) : 0}`)
  }
  return found.toSorted()
}

function positionOf(table: LinearHashTable, hash: number, second: number): number {
  let at = table.first(hash)
  while (at !== NONE && table.word(at, 1) !== second) at = table.next(hash, at)
  return at
}

test.each([2, 3] as const)(
  'a table of %i-word entries contains the same entries as a Map after random insertions and removals',
  (words) => {
    for (let seed = 1; seed <= worlds(8, 20); seed++) {
      const r = random(seed)
      const table = makeTable(words)
      const map = new Map<number, { second: number; third: number }[]>()
      // A small number of hashes that share their low bits leads to long chains.
      const hashOf = (): number => (seed % 2 === 0 ? r.int(2 ** 32) | 0 : (r.int(200) << (seed % 4)) | 0)
      let count = 0
      for (let i = 1; i <= 4000; i++) {
        const growing = i % 2000 < 1200
        const hashes = [...map.keys()]
        if (hashes.length === 0 || r.chance(growing ? 0.8 : 0.2)) {
          const hash = hashOf()
          const entries = map.get(hash) ?? []
          if (entries.length >= 8) continue
          table.insert(hash, i, words === 3 ? -i : 0)
          map.set(hash, [...entries, { second: i, third: words === 3 ? -i : 0 }])
          count++
        } else {
          const hash = r.pick(hashes)
          const entries = map.get(hash) ?? []
          const gone = r.pick(entries)
          table.remove(hash, positionOf(table, hash, gone.second))
          const left = entries.filter((entry) => entry !== gone)
          if (left.length === 0) map.delete(hash)
          else map.set(hash, left)
          count--
        }
        if (i % 250 > 0) continue
        expect(table.entries).toBe(count)
        for (const [hash, entries] of map) {
          expect(entriesOf(table, hash, words)).toEqual(
            entries.map(({ second, third }) => `${second} ${third}`).toSorted(),
          )
        }
        expect(table.first(0x7fffffff)).toBe(NONE)
      }
    }
  },
)

test('removeWhere removes exactly the stale entries of all buckets', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const r = random(seed)
    const table = makeTable(3)
    const stale = new Set<number>()
    for (let i = 1; i <= 1500; i++) {
      // Every third seed fills few buckets, so that chains are long.
      table.insert(seed % 3 === 0 ? r.int(60) : r.int(2 ** 32) | 0, i, 0)
      if (r.chance(seed % 2 === 0 ? 0.9 : 0.4)) stale.add(i)
    }
    const seen: number[] = []
    let removed = 0
    for (let bucket = 0; bucket < table.buckets; bucket++) {
      removed += table.removeWhere(bucket, (position) => stale.has(table.word(position, 1)))
    }
    for (let bucket = 0; bucket < table.buckets; bucket++) {
      table.removeWhere(bucket, (position) => {
        seen.push(table.word(position, 1))
        return false
      })
    }
    expect(removed).toBe(stale.size)
    expect(seen.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 1500 }, (_, i) => i + 1).filter((i) => !stale.has(i)),
    )
  }
})

test('an insertion splits at most one bucket and moves at most one chain', () => {
  const r = random(3)
  const table = makeTable(3)
  let longest = 0
  let mostSplits = 0
  for (let i = 1; i <= 400_000; i++) {
    const buckets = table.buckets
    const chain = i % 16 === 0 ? chainLength(table, table.buckets & (nextPowerOfTwo(table.buckets) / 2 - 1)) : 0
    longest = Math.max(longest, chain)
    table.insert(r.int(2 ** 32) | 0, i, 0)
    mostSplits = Math.max(mostSplits, table.buckets - buckets)
  }
  expect(mostSplits).toBe(1)
  // A chain has 4 entries on average, and 8 before its split. With random hashes, the longest chain is only a small multiple of these
  // numbers.
  expect(longest).toBeGreaterThan(4)
  expect(longest).toBeLessThan(40)
  expect(table.usedBytes / table.entries).toBeLessThan(22)
})

function chainLength(table: LinearHashTable, bucket: number): number {
  let length = 0
  table.removeWhere(bucket, () => {
    length++
    return false
  })
  return length
}

function nextPowerOfTwo(n: number): number {
  return 2 ** Math.ceil(Math.log2(n + 1))
}

test('reuses the memory of removed entries', () => {
  const r = random(5)
  const table = makeTable(3)
  const hashes: number[] = []
  const add = (): void => {
    const hash = r.int(2 ** 32) | 0
    table.insert(hash, 1, 0)
    hashes.push(hash)
  }
  for (let i = 0; i < 20_000; i++) add()
  const full = table.usedBytes
  for (let i = 0; i < 200_000; i++) {
    const hash = hashes[i] ?? 0
    table.remove(hash, table.first(hash))
    add()
  }
  expect(table.usedBytes).toBeLessThan(full * 1.1)
})

test('throws when too many entries share a hash', () => {
  const table = makeTable(2)
  expect(() => {
    for (let i = 1; i < 1000; i++) table.insert(0, i, 0)
  }).toThrow('Too many entries have the same hash.')
})
