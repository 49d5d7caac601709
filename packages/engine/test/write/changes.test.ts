import { expect, test } from 'vitest'

import { type Change, createIndex, openIndex } from '../../src/index.ts'
import { differences } from '../support/comparison.ts'
import { History } from '../support/history.ts'

const WORLDS = 30
const STEPS = 120

/** Returns a batch of several transactions. */
function batchOf(world: History): Change[] {
  return Array.from({ length: 1 + world.random.int(6) }, () => world.step()).flat()
}

test('applying changes leads to the same index as compiling the outcome from scratch', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    const writer = createIndex({ reserve: 'small', hashKey: world.random.bytes(16) })
    const reader = openIndex(writer.shared)
    for (let i = 0; i < STEPS; i++) {
      expect(writer.apply(batchOf(world)), `seed ${seed}, step ${i}`).toEqual([])
      expect(differences(reader, world, i % 20 === 0 ? 10 : 0), `seed ${seed}, step ${i}`).toEqual([])
    }
    expect(differences(reader, world, 100), `seed ${seed}`).toEqual([])
    const compiled = createIndex({ reserve: 'small' })
    expect(compiled.apply(world.snapshot())).toEqual([])
    expect(writer.stats().rows, `seed ${seed}`).toEqual(compiled.stats().rows)
  }
}, 60_000)

test('a reload leads to the same index, whatever the index held before and even after an abandoned reload', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    const writer = createIndex({ reserve: 'small', hashKey: world.random.bytes(16) })
    const reader = openIndex(writer.shared)
    writer.apply(batchOf(world))
    for (let reload = 0; reload < 4; reload++) {
      for (let i = 0; i < 40; i++) writer.apply(batchOf(world))
      // These changes are never applied.
      for (let i = 0; i < 40; i++) world.step()
      const rows = world.snapshot()
      writer.beginReload()
      if (reload === 2) {
        writer.apply(rows.slice(0, rows.length / 2))
        writer.beginReload()
      }
      expect(writer.apply(rows), `seed ${seed}`).toEqual([])
      // Changes continue during the load.
      for (let i = 0; i < 5; i++) expect(writer.apply(batchOf(world)), `seed ${seed}`).toEqual([])
      writer.endReload()
      expect(differences(reader, world, 50), `seed ${seed}, reload ${reload}`).toEqual([])
    }
    const compiled = createIndex({ reserve: 'small' })
    compiled.apply(world.snapshot())
    expect(writer.stats().rows, `seed ${seed}`).toEqual(compiled.stats().rows)
  }
}, 60_000)

test('applying a batch again changes nothing', () => {
  const world = new History(7)
  for (let i = 0; i < 300; i++) world.step()
  const writer = createIndex({ reserve: 'small' })
  writer.apply(world.snapshot())
  const before = writer.stats()
  expect(writer.apply(world.snapshot())).toEqual([])
  expect(writer.stats().rows).toEqual(before.rows)
  expect(differences(openIndex(writer.shared), world, 300)).toEqual([])
})

test('endReload throws when no reload has begun', () => {
  expect(() => createIndex({ reserve: 'small' }).endReload()).toThrow('No reload has begun')
})
