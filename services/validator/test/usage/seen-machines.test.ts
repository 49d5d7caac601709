import { createHash } from 'node:crypto'

import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import type { MachineRow } from '../../src/usage/activity-table.ts'
import { SeenMachines } from '../../src/usage/seen-machines.ts'

/** Returns the row of a license's machine, with a hash of the machine id in place of the keyed hash. */
function rowOf(license: string, machine: string): MachineRow {
  const hash = createHash('sha256').update(machine).digest()
  const number = Number(/\d+$/.exec(license)?.[0] ?? 0)
  return { license: number, generation: 1, machineHash0: hash.readInt32LE(0), machineHash1: hash.readInt32LE(4) }
}

function isDue(seen: SeenMachines, license: string, machine: string): boolean {
  return seen.isDue({ machineOf: () => rowOf(license, machine) }, 0)
}

test('reports each machine of a license as due once', () => {
  const { int } = random(11)
  const seen = new SeenMachines(100_000)
  const model = new Set<string>()
  for (let i = 0; i < 50_000; i++) {
    const [license, machine] = [`license-${int(200)}`, `machine ${int(200)}`]
    const name = `${license}/${machine}`
    expect(isDue(seen, license, machine), name).toBe(!model.has(name))
    model.add(name)
  }
})

test('reports a machine as due again after two periods, and not before', () => {
  const seen = new SeenMachines(10)
  const due = (name: string): boolean => isDue(seen, 'license', name)
  expect(due('first')).toBe(true)
  for (let i = 1; i < 15; i++) expect(due(`other ${i}`)).toBe(true)
  expect(due('first')).toBe(false)
  for (let i = 15; i < 25; i++) expect(due(`other ${i}`)).toBe(true)
  expect(due('first')).toBe(true)
})

test('searches a bounded number of slots when hashes collide', () => {
  const seen = new SeenMachines(1_000)
  const due = (machineHash1: number): boolean =>
    seen.isDue({ machineOf: () => ({ license: 0, generation: 0, machineHash0: 5, machineHash1 }) }, 0)
  for (let i = 1; i <= 64; i++) expect(due(i)).toBe(true)
  for (let i = 1; i <= 64; i++) expect(due(i)).toBe(false)
  // A machine beyond the bound is not stored, so it is due each time.
  expect([due(65), due(65)]).toEqual([true, true])
})
