import type { Change } from '@keyward/engine'
import { expect, test } from 'vitest'

import { type MachineChange, OwnWrites } from '../../src/feed/own-writes.ts'

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function machine(n: number, name: string, held: boolean, used: number): MachineChange & { used: number } {
  return { entity: 'machine', licenseId: id(n), machineId: bytes(name), held, used }
}

function license(n: number, used: number): Change {
  const key = bytes(`key ${n}`)
  const row = {
    organizationId: id(9),
    productId: id(9),
    customerId: id(9),
    key,
    status: 'active' as const,
    entitlements: null,
  }
  return {
    entity: 'license',
    id: id(n),
    row: { id: id(n), ...row, expiresAtMs: Infinity, maxMachines: 5, leaseSeconds: null, graceDays: null, used },
  }
}

test('skips outdated machines and replaces outdated counts until the snapshot contains the claim', () => {
  const ownWrites = new OwnWrites()
  ownWrites.add(machine(1, 'a', true, 3), 12n)
  const older = '12:12:'
  expect(ownWrites.filter([machine(1, 'a', false, 2)], older)).toEqual([])
  expect(ownWrites.filter([machine(1, 'b', true, 2)], older)).toEqual([machine(1, 'b', true, 3)])
  expect(ownWrites.filter([license(1, 2)], older)).toEqual([license(1, 3)])
  const others = [machine(2, 'a', false, 0), license(2, 0)]
  expect(ownWrites.filter(others, older)).toEqual(others)
  const newer = [machine(1, 'a', false, 7), license(1, 7)]
  expect(ownWrites.filter(newer, '13:13:')).toEqual(newer)
  expect(ownWrites.size).toBe(0)
})

test('keeps a claim whose transaction was running when the read began', () => {
  const ownWrites = new OwnWrites()
  ownWrites.add(machine(1, 'a', true, 1), 12n)
  ownWrites.add(machine(1, 'b', true, 2), 14n)
  expect(ownWrites.filter([machine(1, 'a', false, 0), machine(1, 'b', true, 1)], '12:15:12')).toEqual([
    machine(1, 'b', true, 2),
  ])
  expect(ownWrites.size).toBe(1)
  expect(ownWrites.filter([machine(1, 'a', true, 2)], '15:15:')).toEqual([machine(1, 'a', true, 2)])
})

test('replaces a claim with a later release, and discards both when the server changes', () => {
  const ownWrites = new OwnWrites()
  ownWrites.add(machine(1, 'a', true, 1), 12n)
  ownWrites.add(machine(1, 'a', false, 0), 13n)
  expect(ownWrites.size).toBe(1)
  expect(ownWrites.filter([machine(1, 'a', true, 1)], '13:13:')).toEqual([])
  ownWrites.clear()
  expect(ownWrites.filter([machine(1, 'a', true, 1)], '5:5:')).toEqual([machine(1, 'a', true, 1)])
})

test('returns the writes that a snapshot does not contain, with the latest count of their license', () => {
  const ownWrites = new OwnWrites()
  ownWrites.add(machine(1, 'a', true, 1), 12n)
  ownWrites.add(machine(1, 'b', true, 2), 14n)
  ownWrites.add(machine(2, 'a', false, 0), 15n)
  expect(ownWrites.since('12:15:12')).toEqual([machine(1, 'a', true, 2), machine(2, 'a', false, 0)])
  expect(ownWrites.since('16:16:')).toEqual([])
  expect(ownWrites.size).toBe(3)
})
