import { expect, test } from 'vitest'

import { createIndex, type LicenseRecord } from '../../src/index.ts'
import { openStore } from '../../src/memory/index-store.ts'
import {
  EXTENSION_LICENSE,
  EXTENSION_WORDS,
  KIND_LICENSE,
  LICENSE_EXTENSION,
  ROW_WORDS,
} from '../../src/memory/layout.ts'
import { MAX_VALUE_BYTES } from '../../src/memory/value-set.ts'
import { type ExtensionField, ExtensionWriter } from '../../src/write/extension-writer.ts'
import { LicenseWriter } from '../../src/write/license-writer.ts'
import { RowWriter } from '../../src/write/row-writer.ts'
import { ScopeWriter } from '../../src/write/scope-writer.ts'
import { random } from '../support/random.ts'
import { idOf, license, tenant } from '../support/rows.ts'

const utf8 = new TextEncoder()

/** Two fields of the extension, taken from fields that every license has. */
const FIELDS: readonly ExtensionField[] = [
  { word: 3, valueOf: ({ used }) => used },
  { word: 7, valueOf: ({ maxMachines }) => (maxMachines === null ? 0 : maxMachines + 1) },
]

function setUp() {
  const index = createIndex({ reserve: 'small' })
  index.apply(tenant())
  const store = openStore(index.shared)
  const rows = new RowWriter(store)
  const writer = new LicenseWriter(rows, new ScopeWriter(store), new ExtensionWriter(store, FIELDS))
  /** Returns the words of a license's extension, or null when it has none. */
  const extensionOf = (n: number): Int32Array | null => {
    const row = store.lookup.findId(KIND_LICENSE, idOf(4, n))
    const extension = store.licenses.region.words[row * ROW_WORDS + LICENSE_EXTENSION]!
    if (extension === 0) return null
    const words = store.extensions.region.words.slice(extension * EXTENSION_WORDS, (extension + 1) * EXTENSION_WORDS)
    expect(words[EXTENSION_LICENSE]).toBe(row)
    return words
  }
  const remove = (n: number): void => {
    writer.remove(store.lookup.findId(KIND_LICENSE, idOf(4, n)))
  }
  return { index, store, writer, extensionOf, remove }
}

function record(n: number, used: number, maxMachines: number | null): LicenseRecord {
  const change = license({ id: idOf(4, n), key: utf8.encode(`KEY ${n}`), used, maxMachines })
  if (change.entity !== 'license' || change.row === null) throw new Error('not a license')
  return change.row
}

test('a license has an extension only while one of its fields differs from the default', () => {
  const { store, writer, extensionOf, remove } = setUp()
  const r = random(1)
  const records = new Map<number, LicenseRecord>()
  let wrong = 0
  for (let step = 0; step < 2_000; step++) {
    const n = 1 + r.int(20)
    const known = records.get(n)
    if (known !== undefined && r.chance(0.3)) {
      records.delete(n)
      remove(n)
      continue
    }
    const row = record(n, r.int(3), r.chance(0.5) ? null : r.int(3))
    const isKnown = known?.used === row.used && known.maxMachines === row.maxMachines
    const wasEqual = writer.findEqual(row) !== 0
    const rejection = writer.upsert(row)
    records.set(n, row)
    wrong += Number(wasEqual !== isKnown || rejection !== null || writer.findEqual(row) === 0)
  }
  expect(wrong).toBe(0)
  const needed = [...records.values()].filter(({ used, maxMachines }) => used !== 0 || maxMachines !== null)
  expect(store.extensions.live).toBe(needed.length)
  for (const [n, { used, maxMachines }] of records) {
    const words = extensionOf(n)
    expect([words?.[3] ?? 0, words?.[7] ?? 0]).toEqual([used, maxMachines === null ? 0 : maxMachines + 1])
  }
  for (const n of records.keys()) remove(n)
  expect(store.extensions.live).toBe(0)
})

test('writes a license without its extension until an extension is free', () => {
  const { store, writer, extensionOf, remove } = setUp()
  let last = 0
  while (store.extensions.hasCapacity(1)) expect(writer.upsert(record(++last, 1, null))).toBeNull()
  const next = last + 1
  expect(writer.upsert(record(next, 1, null))).toBe('the index is full')
  expect(extensionOf(next)).toBeNull()
  expect(store.lookup.findId(KIND_LICENSE, idOf(4, next))).toBeGreaterThan(0)
  expect(writer.findEqual(record(next, 1, null))).toBe(0)
  expect(writer.upsert(record(last, 2, null))).toBeNull()
  expect(extensionOf(last)?.[3]).toBe(2)
  remove(1)
  expect(writer.upsert(record(next, 1, null))).toBeNull()
  expect(extensionOf(next)?.[3]).toBe(1)
})

test('a license whose entitlements do not fit is written without them and can be revoked', () => {
  const { store, writer, extensionOf } = setUp()
  const filler = (n: number): Uint8Array => new Uint8Array(MAX_VALUE_BYTES).fill(n & 255).fill(n >> 8, 100)
  expect(writer.upsert({ ...record(1, 0, null), entitlements: filler(0) })).toBeNull()
  let last = 0
  while (store.values.acquire(filler(last + 1)) !== 0) last++
  const changed = { ...record(1, 0, null), entitlements: filler(last + 2), status: 'revoked' as const }
  expect(writer.upsert(changed)).toBe('the index is full')
  expect(extensionOf(1)).toBeNull()
  expect(writer.findEqual({ ...changed, entitlements: null })).toBeGreaterThan(0)
  expect(writer.findEqual(changed)).toBe(0)
  store.values.release(store.values.find(filler(1)))
  expect(writer.upsert(changed)).toBeNull()
  expect(writer.findEqual(changed)).toBeGreaterThan(0)
})

test('licenses with equal entitlements share one value, which is freed with the last of them', () => {
  const { store, writer, extensionOf, remove } = setUp()
  const entitlements = utf8.encode('{"seats": 5}')
  for (let n = 1; n <= 50; n++) writer.upsert({ ...record(n, 0, null), entitlements: Uint8Array.from(entitlements) })
  expect([store.extensions.live, store.values.slab.live]).toEqual([50, 1])
  for (let n = 1; n <= 49; n++) writer.upsert(record(n, 0, null))
  expect([store.extensions.live, store.values.slab.live]).toEqual([1, 1])
  expect(extensionOf(50)?.[1]).toBe(store.values.find(entitlements))
  remove(50)
  expect([store.extensions.live, store.values.slab.live]).toEqual([0, 0])
})

test('licenses with default values allocate no extension', () => {
  const { index } = setUp()
  expect(index.stats().rows.extension).toBe(0)
})
