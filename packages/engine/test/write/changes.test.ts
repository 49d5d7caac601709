import { expect, test } from 'vitest'

import { type Change, createIndex, type IndexStats, openIndex } from '../../src/index.ts'
import { differences } from '../support/comparison.ts'
import { History } from '../support/history.ts'

const WORLDS = 30
const STEPS = 120

/** A batch of several transactions. */
function batchOf(world: History): Change[] {
  return Array.from({ length: 1 + world.random.int(6) }, () => world.step()).flat()
}

/** What must be equal; a machine's entry may outlive a license whose deletion came first, until the next reload. */
function rowsOf(stats: IndexStats): IndexStats['rows'] {
  return stats.rows
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
    expect(rowsOf(writer.stats()), `seed ${seed}`).toEqual(rowsOf(compiled.stats()))
  }
}, 60_000)

test('a reload leads to the same index, also after one that was given up, and whatever the index held before', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    const writer = createIndex({ reserve: 'small', hashKey: world.random.bytes(16) })
    const reader = openIndex(writer.shared)
    writer.apply(batchOf(world))
    for (let reload = 0; reload < 4; reload++) {
      for (let i = 0; i < 40; i++) writer.apply(batchOf(world))
      // These are lost, as by a listener that was away.
      for (let i = 0; i < 40; i++) world.step()
      const rows = world.snapshot()
      writer.beginReload()
      if (reload === 2) {
        writer.apply(rows.slice(0, rows.length / 2))
        writer.beginReload()
      }
      expect(writer.apply(rows), `seed ${seed}`).toEqual([])
      // Changes go on while the load does.
      for (let i = 0; i < 5; i++) expect(writer.apply(batchOf(world)), `seed ${seed}`).toEqual([])
      writer.endReload()
      expect(differences(reader, world, 50), `seed ${seed}, reload ${reload}`).toEqual([])
    }
    const compiled = createIndex({ reserve: 'small' })
    compiled.apply(world.snapshot())
    expect(rowsOf(writer.stats()), `seed ${seed}`).toEqual(rowsOf(compiled.stats()))
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

test('an end without a beginning of a reload is refused', () => {
  expect(() => createIndex({ reserve: 'small' }).endReload()).toThrow('no reload has begun')
})
