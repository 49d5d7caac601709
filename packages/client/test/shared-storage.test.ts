/**
 * Tests two processes with one storage, which fails for the first process. The pending change of the first process replaces
 * the value that was stored when the change arrived, but not a newer value of the other process.
 */

import { describe, expect, test } from 'vitest'

import { DAY_MS } from '../contract-suite/service/service.ts'
import { failingStorage, type StorageFault } from './failing-storage.ts'
import { startWorldWithFile } from './setup.ts'

const noFile = { source: 'offline', valid: false, reason: 'NO_FILE' }
const setBack = { source: 'offline', valid: false, reason: 'CLOCK_SET_BACK' }
const validOnline = { source: 'online', valid: true }
const validOffline = { source: 'offline', valid: true }

describe.concurrent('a rejection that could not be stored', () => {
  test('an unstored rejection does not affect a newer file of another process', async () => {
    const { first, other, failing, rejectFirst, gateway } = await startTwo()
    failing.add('write')
    await rejectFirst()
    failing.clear()
    expect(await other.refreshFile()).toMatchObject({ refreshed: true })
    expect(await first.validate()).toMatchObject(validOnline)
    await first.settled()
    await gateway.stop()
    expect(await first.validate()).toMatchObject(validOffline)
    expect(await other.validate()).toMatchObject(validOffline)
  })

  test('an unstored rejection does not affect a newer file of another process while writes fail', async () => {
    const { first, other, failing, rejectFirst, gateway } = await startTwo()
    failing.add('write')
    await rejectFirst()
    expect(await other.refreshFile()).toMatchObject({ refreshed: true })
    await gateway.stop()
    expect(await first.validate()).toMatchObject(validOffline)
    failing.clear()
    expect(await first.validate()).toMatchObject(validOffline)
    expect(await other.validate()).toMatchObject(validOffline)
  })

  test.each<[string, StorageFault]>([
    ['written', 'write'],
    ['read', 'read'],
  ])(
    'ends the rejected file after another process stored a later time, when the storage could not be %s',
    async (_how, fault) => {
      const { first, other, failing, rejectFirst, gateway, clock } = await startTwo()
      failing.add(fault)
      await rejectFirst()
      await gateway.stop()
      clock.aheadMs = 60_000
      expect(await other.validate(), 'has not received the rejection').toMatchObject(validOffline)
      failing.delete('read')
      expect(await first.validate()).toMatchObject(noFile)
      failing.clear()
      expect(await first.validate()).toMatchObject(noFile)
      expect(await other.validate()).toMatchObject(noFile)
    },
  )

  test('a rejection after a failed read ends only the use of the first file that is read later', async () => {
    const { first, other, failing, rejectFirst, gateway } = await startTwo()
    failing.add('read')
    await rejectFirst()
    failing.clear()
    failing.add('write')
    gateway.fault = { kind: 'drop' }
    expect(await first.validate()).toMatchObject(noFile)
    gateway.fault = { kind: 'none' }
    expect(await other.refreshFile()).toMatchObject({ refreshed: true })
    failing.clear()
    await gateway.stop()
    expect(await first.validate()).toMatchObject(validOffline)
    expect(await other.validate()).toMatchObject(validOffline)
  })
})

describe.concurrent('a time of the service that could not be stored', () => {
  test.each<[string, StorageFault]>([
    ['written', 'write'],
    ['read', 'read'],
  ])('replaces the wrong stored time when the storage could not be %s', async (_how, fault) => {
    const { first, other, failing, setRight, gateway } = await startTwo()
    await setRight(fault)
    gateway.fault = { kind: 'drop' }
    failing.delete('read')
    expect(await first.validate()).toMatchObject(validOffline)
    expect(await first.validate(), 'again').toMatchObject(validOffline)
    failing.clear()
    expect(await first.validate()).toMatchObject(validOffline)
    expect(await other.validate(), 'the pending change is written').toMatchObject(validOffline)
  })

  test('an unstored time of the service is replaced only by later observed times', async () => {
    const { first, other, failing, setRight, gateway, clock } = await startTwo()
    await setRight('write')
    gateway.fault = { kind: 'drop' }
    clock.aheadMs = 5 * DAY_MS
    expect(await first.validate(), 'earlier than the wrong time').toMatchObject(validOffline)
    clock.aheadMs = DAY_MS
    expect(await first.validate()).toMatchObject(setBack)
    failing.clear()
    expect(await first.validate()).toMatchObject(setBack)
    expect(await other.validate(), 'the pending change is written').toMatchObject(setBack)
  })

  test.each<[string, StorageFault]>([
    ['written', 'write'],
    ['read', 'read'],
  ])('does not replace a later time of another process when the storage could not be %s', async (_how, fault) => {
    const { first, other, failing, setRight, gateway, clock } = await startTwo()
    await setRight(fault)
    gateway.fault = { kind: 'drop' }
    failing.add('write').delete('read')
    expect(await first.validate()).toMatchObject(validOffline)
    clock.aheadMs = 20 * DAY_MS
    expect(await other.validate()).toMatchObject(validOffline)
    clock.aheadMs = DAY_MS
    expect(await first.validate()).toMatchObject(setBack)
    failing.clear()
    expect(await first.validate()).toMatchObject(setBack)
    expect(await other.validate()).toMatchObject(setBack)
  })
})

async function startTwo() {
  const { storage, failing, sound } = failingStorage()
  const world = await startWorldWithFile({ storage })
  const { client: first, service, restart, gateway, clock } = world
  /** Rejects the license for the first process only. */
  const rejectFirst = async () => {
    service.license.rejectedAs = 'SUSPENDED'
    expect(await first.validate()).toMatchObject({ source: 'online', code: 'SUSPENDED' })
    service.license.rejectedAs = null
  }
  /** Stores a time ten days ahead. Then the first process receives the correct time, while its storage fails with `fault`. */
  const setRight = async (fault: StorageFault) => {
    gateway.fault = { kind: 'drop' }
    clock.aheadMs = 10 * DAY_MS
    expect(await first.validate()).toMatchObject(validOffline)
    failing.add(fault)
    gateway.fault = { kind: 'none' }
    clock.aheadMs = 0
    expect(await first.validate()).toMatchObject(validOnline)
    await first.settled()
  }
  return { ...world, first, other: restart({ storage: sound }), failing, rejectFirst, setRight }
}
