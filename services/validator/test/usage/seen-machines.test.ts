import { random, toActivityColumns } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { SeenMachines } from '../../src/usage/seen-machines.ts'

const blank = { minuteMs: 0, code: 'VALID', count: 1, firstAtMs: 0, lastAtMs: 0 }

/** Returns whether the machine is due. It is the second entry of the columns. */
function isDue(seen: SeenMachines, license: string, machine: string): boolean {
  const row = { ...blank, licenseId: Buffer.from(license.padEnd(16)), machineId: Buffer.from(machine) }
  return seen.isDue(toActivityColumns([{ ...row, machineId: Buffer.from('other') }, row]), 1)
}

test('a machine is due once, as in a set of strings', () => {
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

test('a machine is due again after two generations, and not before', () => {
  const seen = new SeenMachines(10)
  const due = (name: string): boolean => isDue(seen, 'license', name)
  expect(due('first')).toBe(true)
  for (let i = 1; i < 15; i++) expect(due(`other ${i}`)).toBe(true)
  expect(due('first')).toBe(false)
  for (let i = 15; i < 25; i++) expect(due(`other ${i}`)).toBe(true)
  expect(due('first')).toBe(true)
})
