import { expect, test } from 'vitest'

import { createIndex } from '../../src/index.ts'
import { openStore } from '../../src/memory/index-store.ts'
import { MAX_VALUE_BYTES } from '../../src/memory/value-set.ts'
import { random } from '../support/random.ts'

function setUp() {
  const { values, memory } = openStore(createIndex({ reserve: 'small' }).shared)
  const buffer = new Uint8Array(MAX_VALUE_BYTES)
  const read = (row: number): Uint8Array => buffer.slice(0, values.read(row, buffer))
  return { values, read, rows: memory.regions.values }
}

test('stores each distinct value once until its last reference is released', () => {
  const { values, read } = setUp()
  const r = random(1)
  const pool = Array.from({ length: 60 }, (_, n) => r.bytes([1, 43, 44, 45, 104, 105, 300, 4096][n % 8]!))
  const references = new Map<Uint8Array, { row: number; count: number }>()
  const wrong: unknown[] = []
  for (let step = 0; step < 5_000; step++) {
    const value = r.pick(pool)
    const known = references.get(value)
    if (values.find(Uint8Array.from(value)) !== (known?.row ?? 0)) wrong.push(step)
    if (known !== undefined && r.chance(0.5)) {
      values.release(known.row)
      if (known.count === 1) references.delete(value)
      else known.count--
    } else {
      const row = values.acquire(Uint8Array.from(value))
      if (row === 0 || (known !== undefined && row !== known.row)) wrong.push(step)
      references.set(value, { row, count: (known?.count ?? 0) + 1 })
    }
  }
  expect(wrong).toEqual([])
  expect(values.table.entries).toBe(references.size)
  for (const [value, { row }] of references) expect(read(row)).toEqual(value)
  for (const { row, count } of references.values()) for (let i = 0; i < count; i++) values.release(row)
  expect([values.table.entries, values.slab.live]).toEqual([0, 0])
})

test('assigns another generation to a value that reuses a row', () => {
  const { values } = setUp()
  const first = values.acquire(new Uint8Array([1]))
  const generation = values.generation(first)
  values.release(first)
  const second = values.acquire(new Uint8Array([2]))
  expect(second).toBe(first)
  expect(values.generation(second)).not.toBe(generation)
})

test('rejects a value that does not fit, and still adds references to a stored value', () => {
  const { values, read } = setUp()
  let last = 0
  const valueOf = (n: number): Uint8Array => new Uint8Array(MAX_VALUE_BYTES).fill(n & 255).fill(n >> 8, 100)
  while (values.acquire(valueOf(last + 1)) !== 0) last++
  const live = values.slab.live
  expect(last).toBeGreaterThan(10)
  expect(values.acquire(valueOf(last + 2))).toBe(0)
  expect(values.slab.live).toBe(live)
  const row = values.acquire(valueOf(1))
  expect(read(row)).toEqual(valueOf(1))
  values.release(row)
  values.release(row)
  expect(values.acquire(valueOf(last + 2))).toBeGreaterThan(0)
})

test('reads at most MAX_VALUE_BYTES from a row with arbitrary words', () => {
  const { values, rows } = setUp()
  const { words } = rows
  words.fill(-1, 16, 64)
  expect(values.read(1, new Uint8Array(MAX_VALUE_BYTES))).toBe(MAX_VALUE_BYTES)
  words.fill(3, 16, 64)
  expect(values.read(1, new Uint8Array(MAX_VALUE_BYTES))).toBe(3)
})
