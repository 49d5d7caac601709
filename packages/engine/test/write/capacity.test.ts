/** Tests that a full index rejects new rows and accepts every change of existing rows. */

import { expect, test } from 'vitest'

import { type Change, CLAIM_SLOT, CODES, UNKNOWN, createIndex, type IndexWriter, openIndex } from '../../src/index.ts'
import { credential, decide, idOf, license, LICENSE, machine, rule, tenant } from '../support/rows.ts'

const utf8 = new TextEncoder()
const numbered = (n: number): Change => license({ id: idOf(4, n), key: utf8.encode(`KEY ${n}`) })
const range = (from: number, to: number, make: (n: number) => Change): Change[] =>
  Array.from({ length: to - from }, (_, i) => make(from + i))

/**
 * Adds rows until no more fit, and returns the number of the last row. Capacity is checked for the worst case, so the
 * last rows are added one by one.
 */
function fill(writer: IndexWriter, make: (n: number) => Change): number {
  let last = 0
  for (const step of [999, 1]) {
    for (let isFull = false; !isFull;) {
      const rejected = writer.apply(range(last + 1, last + 1 + step, make))
      last += step - rejected.length
      expect(rejected).toEqual(
        range(last + 1, last + 1 + rejected.length, make).map((change) => ({ change, reason: 'the index is full' })),
      )
      isFull = rejected.length > 0
    }
  }
  return last
}

test('rejects licenses that do not fit, and still applies revocations, rules and deletions', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  writer.apply([...tenant(), credential({})])
  const last = fill(writer, numbered)
  const before = writer.stats().rows.license
  const batch = [
    numbered(last + 1),
    license({ status: 'revoked' }),
    { entity: 'credential' as const, id: idOf(5), row: null },
    rule({ type: 'HWID', machineId: utf8.encode('stolen') }),
  ]
  expect(writer.apply(batch).map(({ change }) => change)).toEqual([batch[0]])
  expect(CODES[decide(reader, 'm').code]).toBe('REVOKED')
  expect(CODES[decide(reader, 'stolen', 'KEY 1').code]).toBe('BLACKLISTED')
  expect(reader.findCredential(new Uint8Array(32).fill(7))).toBe(UNKNOWN)
  expect(writer.apply([{ entity: 'license', id: idOf(4, 5), row: null }])).toEqual([])
  expect(writer.apply([numbered(last + 1)])).toEqual([])
  expect(writer.stats().rows.license).toBe(before)
})

test('a reload with more rows than fit keeps the existing rows', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  writer.apply(tenant())
  const licenses = fill(writer, numbered)
  const machines = fill(writer, (n) => machine(n))
  const before = writer.stats().rows
  writer.beginReload()
  const received = writer.receive([
    ...tenant(),
    ...range(1, licenses + 11, numbered),
    ...range(1, machines + 11, (n) => machine(n)),
  ])
  expect(received).toEqual([])
  expect(writer.endReload().map(({ change }) => change)).toEqual([
    ...range(licenses + 1, licenses + 11, numbered),
    ...range(machines + 1, machines + 11, (n) => machine(n)),
  ])
  expect(writer.stats().rows).toEqual(before)
  expect(CODES[decide(reader, 'm', `KEY ${licenses}`).code]).toBe('VALID')
  expect(decide(reader, 'm').slot).toBe(CLAIM_SLOT)
  expect(decide(reader, `machine ${machines}`).slot).toBe(0)
})

test('a rule that changes or moves to another customer needs no new row', () => {
  const writer = createIndex({ reserve: 'small' })
  const other = idOf(3, 1)
  const about = (customerId: Uint8Array): Change => rule({ type: 'CUSTOMER', customerId })
  const blocked = (n: number): Change =>
    rule({ type: 'HWID', machineId: utf8.encode(`m ${n}`) }, { id: idOf(6, n), scope: 'LICENSE', scopeId: LICENSE })
  writer.apply([...tenant(), { entity: 'customer', id: other, row: { id: other, organizationId: idOf(1) } }])
  writer.apply([about(idOf(3))])
  const last = fill(writer, blocked)
  expect(writer.apply([about(idOf(3))])).toEqual([])
  expect(writer.apply([blocked(last + 1)])).toMatchObject([{ reason: 'the index is full' }])
  expect(writer.apply([about(other)])).toEqual([])
})
