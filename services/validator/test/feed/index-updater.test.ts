import type { Change } from '@keyward/engine'
import { createIndex } from '@keyward/engine'
import { expect, test } from 'vitest'

import { Keeper } from '../../src/feed/index-updater.ts'
import { KeyRing } from '../../src/public-keys/store.ts'

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const machineId = new TextEncoder().encode('machine')
const LICENSE: Change = {
  entity: 'license',
  id: id(4),
  row: {
    id: id(4),
    organizationId: id(1),
    productId: id(2),
    customerId: id(3),
    key: new TextEncoder().encode('key'),
    status: 'active',
    expiresAtMs: Infinity,
    maxMachines: 2,
    used: 0,
  },
}

function createWorld(): { keeper: Keeper; machines: () => number } {
  const index = createIndex({ hashKey: id(9), reserve: 'small' })
  const keeper = new Keeper(index, new KeyRing(), { heard: () => undefined, loading: () => undefined })
  keeper.beginReload(true)
  const organizationId = id(1)
  const rows: Change[] = [
    { entity: 'organization', id: id(1), row: { id: id(1) } },
    { entity: 'product', id: id(2), row: { id: id(2), organizationId } },
    { entity: 'customer', id: id(3), row: { id: id(3), organizationId } },
    LICENSE,
  ]
  expect(keeper.apply(rows, [], '10:10:')).toEqual([])
  keeper.endReload()
  return { keeper, machines: () => index.stats().rows.machine }
}

const machine = (held: boolean, used: number) =>
  ({ entity: 'machine', licenseId: id(4), machineId, held, used }) as const

test('a read that does not see the own claim does not undo it, one that sees it tells the truth', () => {
  const { keeper, machines } = createWorld()
  keeper.applyOwn(machine(true, 1), 12n)
  keeper.apply([machine(false, 0)], [], '12:12:')
  expect(machines()).toBe(1)
  keeper.apply([machine(false, 0)], [], '14:14:')
  expect(machines()).toBe(0)
})

test('an answer that comes later than a read that saw its transaction changes nothing', () => {
  const { keeper, machines } = createWorld()
  // Granted in 12 and released by another validator in 13; the answer to the claim is late.
  keeper.apply([machine(false, 0)], [], '14:14:')
  keeper.applyOwn(machine(true, 1), 12n)
  expect([machines(), keeper.pendingCount]).toEqual([0, 0])
  keeper.apply([machine(true, 1)], [], '20:20:')
  keeper.applySeen(machine(false, 2), 15n)
  expect(machines()).toBe(1)
})

test('in another history nothing is pending: what a crash undid is undone here', () => {
  const { keeper, machines } = createWorld()
  keeper.applyOwn(machine(true, 1), 500n)
  keeper.beginReload(true)
  keeper.apply([LICENSE], [], '100:100:')
  keeper.endReload()
  expect([machines(), keeper.pendingCount]).toEqual([0, 0])
  keeper.applyOwn(machine(true, 1), 101n)
  expect(machines()).toBe(1)
})
