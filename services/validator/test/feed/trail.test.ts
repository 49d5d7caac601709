import { expect, test } from 'vitest'

import { Trail } from '../../src/feed/trail.ts'

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const license = (n: number) => ({ entity: 'license', id: id(n), row: null }) as const
const claim = (n: number) => ({ entity: 'machine', licenseId: id(n), machineId: id(99), held: true, used: 1 }) as const
const numbers = (trail: Trail, landmark: string) => trail.since(landmark)?.map((suspect) => suspect.id[0]) ?? null

function createTrail(): Trail {
  const trail = new Trail(3)
  trail.restart('100:100:')
  trail.add([license(1)], [{ id: id(2), row: null }], '110:110:')
  trail.add([license(3)], [], '120:125:120')
  return trail
}

test('returns the rows whose changes were applied after a landmark', () => {
  const trail = createTrail()
  expect(numbers(trail, '100:100:')).toEqual([1, 2, 3])
  expect(numbers(trail, '110:110:')).toEqual([3])
  expect(numbers(trail, '120:124:120')).toEqual([3])
  expect(numbers(trail, '120:125:120')).toEqual([])
  expect(trail.since('110:110:')).toEqual([{ entity: 'license', id: id(3), machineId: null }])
})

test('selects own claims by the numbers of their transactions', () => {
  const trail = createTrail()
  trail.addOwn(claim(7), 111n)
  trail.addOwn(claim(8), 120n)
  expect(trail.since('120:125:120')).toEqual([{ entity: 'machine', id: id(8), machineId: id(99) }])
  expect(numbers(trail, '110:110:')).toEqual([7, 8, 3])
})

test('returns null for a landmark before the start of the trail or before changes that the trail has discarded', () => {
  const trail = createTrail()
  expect(trail.since('90:90:')).toBeNull()
  trail.add([license(4)], [], '130:130:')
  expect(trail.since('100:100:')).toBeNull()
  expect(numbers(trail, '110:110:')).toEqual([3, 4])
  for (const xid of [131n, 132n, 133n, 134n]) trail.addOwn(claim(9), xid)
  expect(trail.since('130:130:')).toBeNull()
  expect(numbers(trail, '133:133:')).toEqual([9, 9])
  trail.restart(null)
  trail.add([license(5)], [], '140:140:')
  expect(trail.since('140:140:')).toBeNull()
})
