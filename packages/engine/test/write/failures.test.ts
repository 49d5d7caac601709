/**
 * Injects a failure at each store of a write section. The section must be discarded whole, or the index must be unusable.
 */

import { afterEach, expect, test, vi } from 'vitest'

import {
  type Change,
  createCheck,
  createIndex,
  createVerdict,
  IMAGE_VERSION,
  type IndexWriter,
  openIndex,
  type Rejected,
} from '../../src/index.ts'
import { LinearHashTable } from '../../src/memory/linear-hash-table.ts'
import { Draft } from '../../src/write/draft.ts'
import { UNUSABLE } from '../../src/write/write-lock.ts'
import { differences } from '../support/comparison.ts'
import { History } from '../support/history.ts'
import { machine, rule, tenant } from '../support/rows.ts'
import { worlds } from '../support/worlds.ts'

const WORLDS = worlds(1, 20)
const APPLIED = 'applied'

afterEach(() => void vi.restoreAllMocks())

/** Lets the `n`-th access to a line that a section changes throw, counted from 1. */
function failAt(n: number): void {
  let stores = 0
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const claim = Draft.prototype.claim
  vi.spyOn(Draft.prototype, 'claim').mockImplementation(function (this: Draft, ...line) {
    if (++stores === n) throw new Error('injected')
    return claim.apply(this, line)
  })
}

/** Applies a batch. Returns APPLIED, or the error as text. */
function outcomeOf(apply: () => Rejected[]): string {
  try {
    return apply().length === 0 ? APPLIED : 'rejected'
  } catch (error) {
    return String(error)
  }
}

/** Returns a copy of the index's memory, in which IMAGE_VERSION is 0, because a discarded section also changes it. */
function bytesOf(writer: IndexWriter): Uint8Array[] {
  const parts = writer.image()!.map(({ buffer, length }) => Uint8Array.from(new Uint8Array(buffer, 0, length)))
  new Int32Array(parts[0]!.buffer)[IMAGE_VERSION] = 0
  return parts
}

function applied(seed: number, steps: number): { world: History; writer: IndexWriter } {
  const world = new History(seed)
  for (let i = 0; i < steps; i++) world.step()
  const writer = createIndex({ reserve: 'small', hashKey: new Uint8Array(16).fill(seed) })
  expect(writer.apply(world.copy().snapshot())).toEqual([])
  return { world, writer }
}

test('a section that throws at any line that it changes leaves the index as it was', () => {
  let failures = 0
  const outcomes = new Set<string>()
  for (let seed = 1; seed <= WORLDS; seed++) {
    const { world, writer } = applied(seed, 150)
    const twin = createIndex({ reserve: 'small', hashKey: new Uint8Array(16).fill(seed) })
    const image = bytesOf(writer)
    const restore = (parts: readonly Uint8Array[]): boolean => (parts.forEach((part, i) => part.set(image[i]!)), true)
    expect(
      twin.restore(
        image.map(({ length }) => length),
        restore,
      ),
    ).toBe(true)
    for (let i = 0; i < 12; i++) {
      const before = world.copy()
      const batch = Array.from({ length: 1 + world.random.int(6) }, () => world.step()).flat()
      const bytes = bytesOf(writer)
      for (let n = 1; ; n++) {
        failAt(n)
        const outcome = outcomeOf(() => writer.apply(batch))
        vi.restoreAllMocks()
        if (outcome === APPLIED) break
        outcomes.add(outcome)
        failures++
        expect(Buffer.concat(bytesOf(writer)).equals(Buffer.concat(bytes)), `seed ${seed}, line ${n}`).toBe(true)
        const found = n % 20 === 1 ? differences(openIndex(writer.shared), before, 5) : []
        expect(found, `seed ${seed}, line ${n}`).toEqual([])
      }
      // An index that has never failed has the same content, so the writer's own data is restored, too.
      expect(twin.apply(batch)).toEqual([])
      expect(Buffer.concat(bytesOf(writer)).equals(Buffer.concat(bytesOf(twin))), `seed ${seed}`).toBe(true)
    }
    expect(differences(openIndex(writer.shared), world, 100), `seed ${seed}`).toEqual([])
  }
  expect(outcomes).toEqual(new Set(['Error: injected']))
  expect(failures).toBeGreaterThan(500 * WORLDS)
})

test('a section of a change in phases that throws makes the index unusable, and readers see the sections before it', () => {
  const sections = { rows: 2, atomicRows: 2 }
  const restrictions = Array.from({ length: 6 }, (_, n): Change => {
    const id = new Uint8Array(16).fill(100 + n)
    return rule({ type: 'HWID', machineId: new Uint8Array([n]) }, { id, kind: 'RESTRICTION' })
  })
  const outcomes = new Set<string>()
  for (let n = 1; ; n++) {
    const onUnusable = vi.fn<() => void>()
    const writer = createIndex({ reserve: 'small', sections, onUnusable })
    writer.apply(tenant())
    const reader = openIndex(writer.shared)
    const verdict = createVerdict()
    failAt(n)
    const outcome = outcomeOf(() => writer.apply([...restrictions, machine(1)]))
    vi.restoreAllMocks()
    reader.decide(createCheck(), 0, verdict)
    expect(verdict.busy).toBe(false)
    if (outcome === APPLIED) break
    const again = outcomeOf(() => writer.apply([...restrictions, machine(1)]))
    const { rule: rules, machine: machines } = writer.stats().rows
    expect(again !== APPLIED || (rules === 6 && machines === 1)).toBe(true)
    outcomes.add(again)
    expect(onUnusable).toHaveBeenCalledTimes(again === APPLIED ? 0 : 1)
  }
  expect(outcomes).toEqual(new Set([APPLIED, `Error: ${UNUSABLE}`]))
})

/** Lets the `n`-th insertion into a table throw, counted from 1. */
function failAtInsertion(n: number): void {
  let insertions = 0
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const { insert } = LinearHashTable.prototype
  vi.spyOn(LinearHashTable.prototype, 'insert').mockImplementation(function (this: LinearHashTable, ...entry) {
    if (++insertions === n) throw new Error('injected')
    insert.apply(this, entry)
  })
}

test.each([
  { way: 'is written in place during a load', inPlace: true, machines: 3 },
  { way: 'does not fit into the journal', inPlace: false, machines: 8_000 },
])('a section that $way and throws never ends, so no check is decided from half of it', ({ inPlace, machines }) => {
  const writer = createIndex({ reserve: 'small', sections: { rows: 10_000, atomicRows: 10_000 } })
  const reader = openIndex(writer.shared)
  writer.apply(tenant())
  if (inPlace) writer.beginReload({ inPlace })
  const verdict = createVerdict()
  const changes = Array.from({ length: machines }, (_, n) => machine(n))
  failAtInsertion(machines)
  expect(() => writer.apply(changes)).toThrow('injected')
  vi.restoreAllMocks()
  reader.decide(createCheck(), 0, verdict)
  expect(verdict.busy).toBe(true)
  expect(() => writer.apply(changes)).toThrow(UNUSABLE)
})
