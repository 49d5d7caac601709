/**
 * Tests restrictions during a change that needs several write sections. The restrictions of a scope take effect
 * together and end together. A scope is restricted until its latest restriction expires.
 */

import { expect, test } from 'vitest'

import {
  type Change,
  CODES,
  type IndexReader,
  type IndexWriter,
  type Rejected,
  type RuleChange,
} from '../../src/index.ts'
import { createCheckedIndex, openCheckedIndex } from '../support/checked.ts'
import { random } from '../support/random.ts'
import { decide, idOf, rule, tenant } from '../support/rows.ts'

const SECTIONS = { rows: 3, atomicRows: 5 }
const utf8 = new TextEncoder()

/** Returns a restriction to machine `n`. `version` determines only its expiry. */
function only(n: number, version = 0): Change {
  const fields = { id: idOf(6, n), kind: 'RESTRICTION', expiresAtMs: version === 0 ? Infinity : 1e9 + version } as const
  return rule({ type: 'HWID', machineId: utf8.encode(`machine ${n}`) }, fields)
}

function monitored(change: Change): RuleChange {
  if (change.entity !== 'rule' || change.row === null) throw new Error('only rules')
  return { ...change, row: { ...change.row, mode: 'MONITOR' } }
}

function without(change: Change): RuleChange {
  if (change.entity !== 'rule') throw new Error('only rules')
  return { ...change, row: null }
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)
const numbers = range(1, 61)

function applyInPages(writer: IndexWriter, changes: readonly Change[]): Rejected[] {
  const rejected: Rejected[] = []
  for (const step of ['restrict', 'loosen'] as const) {
    for (let at = 0; at < changes.length; at += 7) rejected.push(...writer.applyPage(changes.slice(at, at + 7), step))
  }
  writer.finishPages()
  return rejected
}

/** Applies the changes as a batch or as pages. Returns the codes that checks of each machine had in all states. */
function codesDuring(before: Change[], changes: Change[], inPages: boolean): Map<number, Set<string>> {
  const seen = new Map(numbers.map((n) => [n, new Set<string>()]))
  const watch = (reader: IndexReader): void => {
    for (const n of numbers) seen.get(n)!.add(CODES[decide(reader, `machine ${n}`).code]!)
  }
  let onSection = (): void => undefined
  const writer = createCheckedIndex({ reserve: 'small', sections: SECTIONS, onSection: () => onSection() })
  const reader = openCheckedIndex(writer.shared)
  expect(writer.apply([...tenant(), ...before])).toEqual([])
  onSection = () => watch(reader)
  watch(reader)
  expect(inPages ? applyInPages(writer, changes) : writer.apply(changes)).toEqual([])
  watch(reader)
  return seen
}

const VALID = ['VALID']
const first = range(1, 31)
const CHANGES: [string, Change[], Change[], allowed: number[]][] = [
  ['appear', [], first.map((n) => only(n)), first],
  ['disappear', first.map((n) => only(n)), first.map((n) => without(only(n))), first],
  [
    'are partly replaced',
    first.map((n) => only(n)),
    [...range(1, 16).map((n) => without(only(n))), ...range(31, 46).map((n) => only(n))],
    range(16, 31),
  ],
  ['get a later expiry', first.map((n) => only(n, 1)), first.map((n) => only(n, 2)), first],
  ['get an earlier expiry', first.map((n) => only(n)), first.map((n) => only(n, 1)), first],
  ['are added to others', range(1, 6).map((n) => only(n)), range(6, 31).map((n) => only(n)), range(1, 6)],
  ['that were monitored are enforced', first.map((n) => monitored(only(n))), first.map((n) => only(n)), first],
  ['become monitored', first.map((n) => only(n)), first.map((n) => monitored(only(n))), first],
  [
    'that were monitored are enforced beside others',
    first.map((n) => (n < 11 ? only(n) : monitored(only(n)))),
    range(11, 31).map((n) => only(n)),
    range(1, 11),
  ],
]

test.each(CHANGES)(
  'while restrictions %s, a check that they allow before and after is never rejected',
  (_name, before, changes, allowed) => {
    for (const inPages of [false, true]) {
      const seen = codesDuring(before, changes, inPages)
      for (const n of allowed) expect([n, ...seen.get(n)!]).toEqual([n, ...VALID])
      // No restriction matches the last machine, so its checks are rejected while there are restrictions.
      expect(seen.get(60)!.has('BLACKLISTED')).toBe(true)
    }
  },
)

test('a scope is restricted until its latest restriction expires, after random additions and removals', () => {
  const r = random(1)
  const writer = createCheckedIndex({ reserve: 'small' })
  const reader = openCheckedIndex(writer.shared)
  writer.apply(tenant())
  const ends = new Map<number, number>()
  for (let step = 0; step < 3_000; step++) {
    const n = r.int(40)
    const id = idOf(6, n)
    if (r.chance(0.5)) {
      const expiresAtMs = r.chance(0.1) ? Infinity : r.int(1_000) - 10
      ends.set(n, expiresAtMs)
      writer.apply([
        rule({ type: 'HWID', machineId: utf8.encode(`machine ${n}`) }, { id, kind: 'RESTRICTION', expiresAtMs }),
      ])
    } else {
      ends.delete(n)
      writer.apply([{ entity: 'rule', id, row: null }])
    }
    for (const nowMs of step % 100 === 0 ? [0, 1, 500, 989, 990] : [0]) {
      const isRestricted = [...ends.values()].some((end) => end > nowMs)
      const { code } = decide(reader, 'another', 'KEY', nowMs)
      expect(CODES[code]).toBe(isRestricted ? 'BLACKLISTED' : 'VALID')
    }
  }
})
