/**
 * Compares the literal constants of the layout with its declaration. The constant of a field has the name RECORD_FIELD. In a divided word,
 * the constant of a one-bit field is a mask, and the constant of a longer field is a shift. Declarations list sizes in order, so fields
 * cannot overlap.
 */

import { expect, test } from 'vitest'

import { openStore } from '../../src/memory/index-store.ts'
import * as layout from '../../src/memory/layout.ts'
import { createShared } from '../../src/memory/shared-memory.ts'

const constants = new Map<string, unknown>(Object.entries(layout))
/** Fields that are in the same place in every record that has them. */
const SHARED: Readonly<Record<string, string>> = { id: 'ID', generation: 'GENERATION', expiry: 'EXPIRY', mark: 'MARK' }
/** Sizes of the records that do not have ROW_WORDS words. */
const WORDS: Readonly<Record<string, number>> = { customer: 8, extension: 8, node: 32 }

interface Field {
  name: string
  words: number
  /** Offset from the record's start, in words. */
  word: number
  bits: readonly { name: string; bits: number; bit: number }[]
}

const upper = (name: string): string => name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()

function fieldsOf(record: Readonly<Record<string, number | Readonly<Record<string, number>>>>): Field[] {
  let word = 0
  return Object.entries(record).map(([name, size]) => {
    const words = typeof size === 'number' ? size : 1
    let bit = 0
    const bits = Object.entries(typeof size === 'number' ? {} : size).map(([part, count]) => {
      bit += count
      return { name: part, bits: count, bit: bit - count }
    })
    word += words
    return { name, words, word: word - words, bits }
  })
}

const RECORDS = Object.entries(layout.LAYOUT).map(([record, fields]) => ({ record, fields: fieldsOf(fields) }))

/** Returns the names and values of the constants that a record's declaration requires. */
function constantsOf(record: string, fields: readonly Field[]): [name: string, value: number][] {
  const nameOf = (field: string): string => (field in SHARED ? SHARED[field]! : upper(`${record}_${field}`))
  return fields.flatMap(({ name, word, bits }): [string, number][] => [
    [nameOf(name), name === 'expiry' ? word / 2 : word],
    ...bits.map((part): [string, number] => {
      if (part.bits === 1) return [nameOf(part.name), (1 << part.bit) | 0]
      return [`${nameOf(part.name)}_SHIFT`, part.bit]
    }),
  ])
}

test.each(RECORDS)('the declared fields fill the whole record: $record', ({ record, fields }) => {
  expect(fields.reduce((sum, { words }) => sum + words, 0)).toBe(WORDS[record] ?? layout.ROW_WORDS)
  const divided = fields.filter(({ bits }) => bits.length > 0)
  expect(divided.map(({ bits }) => bits.reduce((sum, part) => sum + part.bits, 0))).toEqual(divided.map(() => 32))
})

test.each(RECORDS)('the constants of a record equal its declaration: $record', ({ record, fields }) => {
  const declared = constantsOf(record, fields).filter(([name]) => !name.includes('_SPARE'))
  expect(declared.map(([name]) => [name, constants.get(name)])).toEqual(declared)
})

test('the lengths of hashes and the masks of divided words equal their declaration', () => {
  const { credential, license, rule } = layout.LAYOUT
  expect(layout.CREDENTIAL_SECRET_WORDS).toBe(credential.secret)
  expect(layout.LICENSE_KEY_HASH_WORDS).toBe(license.keyHash)
  expect(layout.LICENSE_STATUS_MASK).toBe(2 ** license.state.status - 1)
  expect(layout.RULE_TYPE_MASK).toBe(2 ** rule.traits.type - 1)
  expect(layout.RULE_PREFIX_MASK).toBe(2 ** rule.traits.prefix - 1)
  expect(layout.LAYOUT.scope.counts).toBe(layout.TYPE_CUSTOMER - layout.TYPE_IP6)
})

test('every constant whose name starts with the name of a record belongs to a declared field', () => {
  const declared = new Set(
    RECORDS.flatMap(({ record, fields }) =>
      fields
        .flatMap(({ name, bits }) => [name, ...bits.map((part) => part.name)])
        .map((one) => upper(`${record}_${one}`)),
    ),
  )
  const prefixes = RECORDS.map(({ record }) => `${upper(record)}_`)
  const unknown = [...constants.keys()].filter(
    (name) =>
      prefixes.some((prefix) => name.startsWith(prefix)) &&
      !/^[A-Z]+_WORDS$/.test(name) &&
      !declared.has(name.replace(/_(?:SHIFT|MASK|WORDS)$/, '')),
  )
  expect(unknown).toEqual([])
})

test('the row numbers of the largest slabs fit into the bits that store them', () => {
  const { scopes, organizations, licenses } = openStore(createShared([1, 2, 3, 4], 'large'))
  const { credential, license } = layout.LAYOUT
  expect(scopes.region.words.length / scopes.rowWords).toBeLessThanOrEqual(2 ** license.state.scope)
  expect(organizations.region.words.length / organizations.rowWords).toBeLessThanOrEqual(
    2 ** credential.state.organization,
  )
  expect(licenses.region.words.length / licenses.rowWords).toBeLessThanOrEqual(2 ** 28)
})
