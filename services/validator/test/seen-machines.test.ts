import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { SeenMachines } from '../src/recording/seen-machines.ts'

const id = (text: string): Uint8Array => new TextEncoder().encode(text)

test('a machine is due once, as a set of strings would say', () => {
  const { int } = random(11)
  const seen = new SeenMachines(100_000)
  const model = new Set<string>()
  for (let i = 0; i < 50_000; i++) {
    const [license, machine] = [`license-${int(200)}`, `machine ${int(200)}`]
    const name = `${license}/${machine}`
    expect(seen.isDue(id(license), id(machine)), name).toBe(!model.has(name))
    model.add(name)
  }
})

test('what was written two generations ago is due again, and nothing before', () => {
  const seen = new SeenMachines(10)
  const license = id('license')
  const due = (name: string): boolean => seen.isDue(license, id(name))
  expect(due('first')).toBe(true)
  for (let i = 1; i < 15; i++) expect(due(`other ${i}`)).toBe(true)
  expect(due('first')).toBe(false)
  for (let i = 15; i < 25; i++) expect(due(`other ${i}`)).toBe(true)
  expect(due('first')).toBe(true)
})
