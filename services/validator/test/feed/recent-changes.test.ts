import { expect, test } from 'vitest'

import { RecentChanges } from '../../src/feed/recent-changes.ts'

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const license = (n: number) => ({ entity: 'license', id: id(n), row: null }) as const
const claim = (n: number) => ({ entity: 'machine', licenseId: id(n), machineId: id(99), held: true, used: 1 }) as const
const numbers = (recent: RecentChanges, landmark: string) => recent.since(landmark)?.map((row) => row.id[0]) ?? null

function createChanges(): RecentChanges {
  const recent = new RecentChanges(3)
  recent.restart('100:100:')
  recent.add([license(1)], [{ id: id(2), row: null }], '110:110:')
  recent.add([license(3)], [], '120:125:120')
  return recent
}

test('returns the rows whose changes were applied after a published snapshot', () => {
  const recent = createChanges()
  expect(numbers(recent, '100:100:')).toEqual([1, 2, 3])
  expect(numbers(recent, '110:110:')).toEqual([3])
  expect(numbers(recent, '120:124:120')).toEqual([3])
  expect(numbers(recent, '120:125:120')).toEqual([])
  expect(recent.since('110:110:')).toEqual([{ entity: 'license', id: id(3), machineId: null }])
})

test('selects own claims by the numbers of their transactions', () => {
  const recent = createChanges()
  recent.addOwn(claim(7), 111n)
  recent.addOwn(claim(8), 120n)
  expect(recent.since('120:125:120')).toEqual([{ entity: 'machine', id: id(8), machineId: id(99) }])
  expect(numbers(recent, '110:110:')).toEqual([7, 8, 3])
})

test('returns null for a snapshot before the first recorded change or before changes that were discarded', () => {
  const recent = createChanges()
  expect(recent.since('90:90:')).toBeNull()
  recent.add([license(4)], [], '130:130:')
  expect(recent.since('100:100:')).toBeNull()
  expect(numbers(recent, '110:110:')).toEqual([3, 4])
  for (const xid of [131n, 132n, 133n, 134n]) recent.addOwn(claim(9), xid)
  expect(recent.since('130:130:')).toBeNull()
  expect(numbers(recent, '133:133:')).toEqual([9, 9])
  recent.restart(null)
  recent.add([license(5)], [], '140:140:')
  expect(recent.since('140:140:')).toBeNull()
})
