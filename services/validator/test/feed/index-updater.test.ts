import type { Change } from '@keyward/engine'
import { createIndex } from '@keyward/engine'
import { expect, test } from 'vitest'

import { IndexUpdater } from '../../src/feed/index-updater.ts'
import { PublicKeyStore } from '../../src/public-keys/store.ts'

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const machineId = new TextEncoder().encode('machine')
const LICENSE = {
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
    leaseSeconds: null,
    graceDays: null,
    used: 0,
    entitlements: null,
  },
} as const satisfies Change

const ROWS: Change[] = [
  { entity: 'organization', id: id(1), row: { id: id(1) } },
  { entity: 'product', id: id(2), row: { id: id(2), organizationId: id(1), entitlements: null } },
  { entity: 'customer', id: id(3), row: { id: id(3), organizationId: id(1) } },
]

function createWorld(options: ConstructorParameters<typeof IndexUpdater>[2] = {}): {
  updater: IndexUpdater
  machines: () => number
} {
  const index = createIndex({ hashKey: id(9), reserve: 'small' })
  const updater = new IndexUpdater(index, new PublicKeyStore(''), options)
  updater.beginReload(null)
  expect(updater.receive([...ROWS, LICENSE], [], '10:10:')).toEqual([])
  updater.endReload({ changes: [], signingKeys: [], snapshot: '10:10:' })
  return { updater, machines: () => index.stats().rows.machine }
}

const machine = (held: boolean, used: number) =>
  ({ entity: 'machine', licenseId: id(4), machineId, held, used }) as const

test('keeps an own claim until a read contains its transaction', () => {
  const { updater, machines } = createWorld()
  updater.applyOwn(machine(true, 1), 12n)
  updater.apply([machine(false, 0)], [], '12:12:')
  expect(machines()).toBe(1)
  updater.apply([machine(false, 0)], [], '14:14:')
  expect(machines()).toBe(0)
})

test('ignores the result of a claim whose transaction a read has already delivered', () => {
  const { updater, machines } = createWorld()
  // Transaction 12 granted the slot. Transaction 13, of another validator, released the slot. The result of the claim arrives
  // late.
  updater.apply([machine(false, 0)], [], '14:14:')
  updater.applyOwn(machine(true, 1), 12n)
  expect([machines(), updater.ownWriteCount]).toEqual([0, 0])
  updater.apply([machine(true, 1)], [], '20:20:')
  updater.applySeen(machine(false, 2), 15n)
  expect(machines()).toBe(1)
})

test('records an own claim that no read delivers, because a reload without differences contains it', () => {
  const recorded: Change[] = []
  let interruptions = 0
  const recorder = {
    applied: (changes: readonly Change[]) => recorded.push(...changes),
    interrupt: () => interruptions++,
  }
  const { updater } = createWorld({ recorder })
  interruptions = 0
  updater.applyOwn(machine(true, 1), 15n)
  updater.beginReload('20:20:')
  const license = { ...LICENSE, row: { ...LICENSE.row, used: 1 } }
  updater.receive([...ROWS, license, machine(true, 1)], [], '20:20:')
  updater.endReload({ changes: [], signingKeys: [], snapshot: '20:20:' })
  expect([interruptions, recorded]).toEqual([0, [machine(true, 1)]])
})

test('discards own claims on a reload from another server', () => {
  const { updater, machines } = createWorld()
  updater.applyOwn(machine(true, 1), 500n)
  updater.changeHistory()
  updater.beginReload('100:100:')
  updater.receive([LICENSE], [], '100:100:')
  updater.endReload({ changes: [], signingKeys: [], snapshot: '100:100:' })
  expect([machines(), updater.ownWriteCount]).toEqual([0, 0])
  updater.applyOwn(machine(true, 1), 101n)
  expect(machines()).toBe(1)
})

test('applies an own claim at once during a reload that contains its transaction, and reports the machine as unsettled', () => {
  const { updater, machines } = createWorld()
  updater.beginReload('20:20:')
  updater.applyOwn(machine(true, 1), 15n)
  expect([machines(), updater.unsettled.length]).toEqual([1, 1])
  updater.receive([LICENSE], [], '20:20:')
  // Another validator has released the machine. The machine is read again with the changes since the reload.
  updater.endReload({ changes: [machine(false, 0)], signingKeys: [], snapshot: '22:22:' })
  expect([machines(), updater.unsettled.length]).toEqual([0, 0])
})
