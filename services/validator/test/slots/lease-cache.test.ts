import { expect, test } from 'vitest'

import { type LeaseKey, Leases } from '../../src/shared/leases.ts'

const small = () => new Leases(new SharedArrayBuffer(4 * 8 * 8 * 4))
const keyOf = (n: number): LeaseKey => ({ license: n % 7, licenseGeneration: 1, machineHash0: n * 4, machineHash1: n })

test('returns the end of a lease, which is counted from the sending of the renewal and rounded down', () => {
  const leases = small()
  leases.set(keyOf(1), 60, 1_234.5)
  expect(leases.deadlineMs(keyOf(1), 60)).toBe(61_200)
  leases.set(keyOf(1), 60, 31_234.5)
  expect(leases.deadlineMs(keyOf(1), 60)).toBe(91_200)
})

test('ignores the lease of another machine, license, generation or length', () => {
  const leases = small()
  leases.set(keyOf(1), 60, 0)
  const fields = ['license', 'licenseGeneration', 'machineHash0', 'machineHash1'] as const
  for (const field of fields) expect(leases.deadlineMs({ ...keyOf(1), [field]: 99 }, 60)).toBe(0)
  expect(leases.deadlineMs(keyOf(1), 61)).toBe(0)
})

test('replaces the leases that end first when the cache is full', () => {
  const leases = small()
  const one = (n: number): LeaseKey => ({ ...keyOf(0), machineHash1: n + 1 })
  for (let n = 0; n < 12; n++) leases.set(one(n), 60, 1_000 * (n + 1))
  const kept = Array.from({ length: 12 }, (_, n) => leases.deadlineMs(one(n), 60) > 0)
  expect(kept).toEqual(kept.map((_, n) => n >= 4))
})

test('clears every lease, and ignores renewals that were sent before the clearing', () => {
  const leases = small()
  for (let n = 0; n < 20; n++) leases.set(keyOf(n), 60, 1_000)
  leases.clear(2_000)
  leases.set(keyOf(1), 60, 2_000)
  for (let n = 0; n < 20; n++) expect(leases.deadlineMs(keyOf(n), 60)).toBe(0)
  leases.set(keyOf(1), 60, 2_001)
  expect(leases.deadlineMs(keyOf(1), 60)).toBe(62_000)
})
