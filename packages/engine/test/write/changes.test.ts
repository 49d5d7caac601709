import { isDeepStrictEqual } from 'node:util'

import { expect, test } from 'vitest'

import { type Change, CODES } from '../../src/index.ts'
import { createCheckedIndex, openCheckedIndex } from '../support/checked.ts'
import { differences } from '../support/comparison.ts'
import { History } from '../support/history.ts'
import { decide, idOf, LICENSE, license, machine, rule, tenant } from '../support/rows.ts'
import { worlds } from '../support/worlds.ts'

const WORLDS = worlds(6, 30)
const STEPS = 120

/** Returns a batch of several transactions. */
function batchOf(world: History): Change[] {
  return Array.from({ length: 1 + world.random.int(6) }, () => world.step()).flat()
}

// With small limits, the changes of several transactions on the same rows are written in phases.
test.each([
  { limits: 'the default limits', sections: undefined },
  { limits: 'sections of 5 rows', sections: { rows: 5, atomicRows: 5_000 } },
  { limits: 'changes of more than 8 rows in phases', sections: { rows: 5, atomicRows: 8 } },
])('with $limits, an index after many changes equals an index that is built from the final rows', ({ sections }) => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    const writer = createCheckedIndex({
      reserve: 'tiny',
      hashKey: world.random.bytes(16),
      ...(sections && { sections }),
    })
    const reader = openCheckedIndex(writer.shared)
    for (let i = 0; i < STEPS; i++) {
      expect(writer.apply(batchOf(world)), `seed ${seed}, step ${i}`).toEqual([])
      expect(differences(reader, world, i % 10 === 0 ? 10 : 0), `seed ${seed}, step ${i}`).toEqual([])
    }
    expect(differences(reader, world, 100), `seed ${seed}`).toEqual([])
    const compiled = createCheckedIndex({ reserve: 'tiny' })
    expect(compiled.apply(world.snapshot())).toEqual([])
    expect(writer.stats().rows, `seed ${seed}`).toEqual(compiled.stats().rows)
  }
})

test.each([
  { rows: 1_000, atomicRows: 5_000 },
  { rows: 1, atomicRows: 1 },
])('applies only the last of several changes of a row or machine with %j', (sections) => {
  const writer = createCheckedIndex({ reserve: 'tiny', sections })
  writer.apply(tenant())
  const block = rule({ type: 'HWID', machineId: new TextEncoder().encode('m') }, { id: idOf(6, 1) })
  const unblock: Change = { entity: 'rule', id: idOf(6, 1), row: null }
  const release: Change = { ...machine(1), held: false, used: 0 }
  const batch = [block, machine(1), unblock, machine(2), release, block, unblock, machine(2)]
  expect(writer.apply(batch)).toEqual([])
  expect(writer.stats().rows).toMatchObject({ rule: 0, machine: 1 })
})

test('a reload makes the index equal to its rows, from any earlier state and after an abandoned reload', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    const writer = createCheckedIndex({ reserve: 'tiny', hashKey: world.random.bytes(16) })
    const reader = openCheckedIndex(writer.shared)
    writer.apply(batchOf(world))
    for (let reload = 0; reload < 6; reload++) {
      for (let i = 0; i < 40; i++) writer.apply(batchOf(world))
      // These changes are never applied.
      for (let i = 0; i < 40; i++) world.step()
      const rows = world.snapshot()
      const inPlace = reload % 2 === 1
      writer.beginReload({ inPlace })
      if (reload % 3 === 2) {
        writer.receive(rows.slice(0, inPlace ? 0 : rows.length / 2))
        writer.beginReload({ inPlace })
      }
      const half = rows.splice(0, rows.length / 2)
      expect(writer.receive(inPlace ? [...half, ...rows] : half), `seed ${seed}`).toEqual([])
      // The rows are in random order, so rows of the first half refer to rows of the second half.
      if (reload === 4) writer.continueInPlace()
      expect(writer.receive(reload === 4 ? [...half, ...rows] : rows), `seed ${seed}`).toEqual([])
      expect(writer.endReload(), `seed ${seed}`).toEqual([])
      expect(differences(reader, world, 50), `seed ${seed}, reload ${reload}`).toEqual([])
    }
    const compiled = createCheckedIndex({ reserve: 'tiny' })
    compiled.apply(world.snapshot())
    expect(writer.stats().rows, `seed ${seed}`).toEqual(compiled.stats().rows)
  }
})

test('a reload finds exactly the row of which a single field has changed', () => {
  for (let seed = 1; seed <= 3 * WORLDS; seed++) {
    const world = new History(seed)
    for (let i = 0; i < 80; i++) world.step()
    const writer = createCheckedIndex({ reserve: 'tiny' })
    writer.apply(world.snapshot())
    for (let reload = 0; reload < 10; reload++) {
      const former = [...world.licenses, ...world.rules]
      const changes = world.changeField()
      const isEqual = (change: Change): boolean =>
        former.some((row) => change.entity !== 'machine' && isDeepStrictEqual(row, change.row))
      const changed = changes.filter((change) => change.entity !== 'machine' && change.row !== null && !isEqual(change))
      writer.beginReload()
      writer.receive(world.snapshot())
      expect(writer.differences, `seed ${seed}, reload ${reload}`).toBe(changed.length)
      expect(writer.endReload(), `seed ${seed}`).toEqual([])
    }
    expect(differences(openCheckedIndex(writer.shared), world, 50), `seed ${seed}`).toEqual([])
  }
})

test('a new license with more rules than fit into one section is never VALID before its blacklist is written', () => {
  const codes = new Set<string | undefined>()
  const sections = { rows: 1, atomicRows: 1 }
  const writer = createCheckedIndex({
    reserve: 'tiny',
    sections,
    onSection: () => codes.add(CODES[decide(reader, 'm').code]),
  })
  const reader = openCheckedIndex(writer.shared)
  writer.apply(tenant().filter(({ entity }) => entity !== 'license'))
  const blocked = Array.from({ length: 3 }, (_, n) =>
    rule(
      { type: 'HWID', machineId: new TextEncoder().encode(n === 0 ? 'm' : `machine ${n}`) },
      { id: idOf(6, n), scope: 'LICENSE', scopeId: LICENSE },
    ),
  )
  expect(writer.apply([license({}), ...blocked])).toEqual([])
  expect(codes).not.toContain('VALID')
  expect(codes).toContain('BLACKLISTED')
})

test('changes that are applied during a reload take precedence over its rows', () => {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = new History(seed)
    const { random } = world
    const writer = createCheckedIndex({ reserve: 'tiny', hashKey: random.bytes(16) })
    const reader = openCheckedIndex(writer.shared)
    for (let i = 0; i < 40; i++) writer.apply(batchOf(world))
    for (let reload = 0; reload < 4; reload++) {
      // The reload contains these changes, and the index does not yet.
      const behind = Array.from({ length: random.int(10) }, () => batchOf(world))
      const rows = world.snapshot()
      writer.beginReload()
      while (rows.length > 0) {
        if (behind.length < 3) behind.push(batchOf(world))
        writer.receive(rows.splice(0, 1 + random.int(40)))
        const batch = random.chance(0.7) ? behind.shift() : undefined
        expect(writer.apply(batch ?? []), `seed ${seed}`).toEqual([])
      }
      for (const batch of behind) expect(writer.apply(batch), `seed ${seed}`).toEqual([])
      expect(writer.endReload(), `seed ${seed}`).toEqual([])
      expect(differences(reader, world, 50), `seed ${seed}, reload ${reload}`).toEqual([])
    }
    const compiled = createCheckedIndex({ reserve: 'tiny' })
    compiled.apply(world.snapshot())
    expect(writer.stats().rows, `seed ${seed}`).toEqual(compiled.stats().rows)
  }
})

test('a reload adds the machines of a new license that changed after its snapshot', () => {
  const writer = createCheckedIndex({ reserve: 'tiny' })
  writer.beginReload()
  writer.receive([...tenant(), license({ used: 1, maxMachines: 1 }), machine(1)])
  expect(writer.endReload([license({ used: 1, maxMachines: 2 })])).toEqual([])
  expect(writer.stats().rows).toMatchObject({ license: 1, machine: 1 })
})

test('applying a batch again changes nothing', () => {
  const world = new History(7)
  for (let i = 0; i < 300; i++) world.step()
  const writer = createCheckedIndex({ reserve: 'tiny' })
  writer.apply(world.snapshot())
  const before = writer.stats()
  expect(writer.apply(world.snapshot())).toEqual([])
  expect(writer.stats().rows).toEqual(before.rows)
  expect(differences(openCheckedIndex(writer.shared), world, 300)).toEqual([])
})

test('endReload throws when no reload has begun', () => {
  expect(() => createCheckedIndex({ reserve: 'tiny' }).endReload()).toThrow('No reload has begun')
})
