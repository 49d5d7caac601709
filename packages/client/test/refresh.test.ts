import { generateKeyPair } from '@keyward/license-file'
import { describe, expect, test, vi } from 'vitest'

import { DAY_MS } from '../contract-suite/service/service.ts'
import { type LicenseStorage, memoryStorage } from '../src/index.ts'
import { failingStorage, type StorageFault } from './failing-storage.ts'
import { startWorld, startWorldWithFile, type World } from './setup.ts'

const FILE = '/api/v1/licenses/file'
const filesAsked = ({ gateway }: World) => gateway.requests.filter((path) => path === FILE).length

describe.concurrent('the background', () => {
  test('fetches a file at the first valid check', async () => {
    const world = await startWorld()
    await world.client.validate()
    await world.client.settled()
    expect(world.refreshes).toMatchObject([{ refreshed: true, code: 'REFRESHED' }])
    await world.gateway.stop()
    expect(await world.client.validate()).toMatchObject({ source: 'offline', valid: true })
  })

  test('runs one fetch for concurrent calls', async () => {
    const world = await startWorld()
    const { client } = world
    const checks = Array.from({ length: 20 }, () => client.validate())
    await Promise.all([...checks, client.refreshFile(), client.refreshFile()])
    await client.settled()
    expect(filesAsked(world)).toBe(1)
  })

  test('keeps a new file after a restart of the app', async () => {
    const world = await startWorldWithFile()
    const restarted = world.restart()
    await restarted.validate()
    await restarted.settled()
    expect(filesAsked(world)).toBe(0)
  })

  test('replaces a file that is a day old', async () => {
    const world = await startWorldWithFile()
    world.clock.aheadMs = DAY_MS - 60_000
    await validateAfterRestart(world)
    expect(filesAsked(world)).toBe(0)
    world.clock.aheadMs = DAY_MS + 60_000
    await validateAfterRestart(world)
    expect(filesAsked(world)).toBe(1)
  })

  test('replaces a file with a lifetime of one hour after half an hour', async () => {
    const world = await startWorld()
    world.service.license.expiresAt = new Date(Date.now() + 60 * 60_000).toISOString()
    await world.client.validate()
    await world.client.settled()
    world.clock.aheadMs = 31 * 60_000
    await validateAfterRestart(world)
    expect(filesAsked(world)).toBe(2)
  })

  test('replaces the file of a renewed license at the next check', async () => {
    const world = await startWorldWithFile()
    world.service.license.expiresAt = new Date(Date.now() + 500 * DAY_MS).toISOString()
    await validateAfterRestart(world)
    expect(filesAsked(world)).toBe(1)
  })

  test('does not fetch a file again soon after a failed fetch', async () => {
    const world = await startWorld()
    world.service.signer = generateKeyPair()
    for (let check = 0; check < 5; check++) {
      expect(await world.client.validate()).toMatchObject({ source: 'online', valid: true })
      await world.client.settled()
    }
    expect(filesAsked(world)).toBe(1)
    expect(world.refreshes).toEqual([{ source: 'online', refreshed: false, code: 'BAD_FILE', reason: 'UNKNOWN_KEY' }])
  })

  test('does not store a file that was requested before a rejection', async () => {
    const { client, service, gateway } = await startWorld()
    gateway.next = [{ kind: 'none' }, { kind: 'slow', delayMs: 1_500 }]
    await client.validate()
    const refreshing = client.refreshFile()
    await vi.waitFor(() => expect(gateway.requests).toContain(FILE), { timeout: 10_000 })
    // The rejection arrives before the file, which the service still sends.
    gateway.next = [{ kind: 'respond', status: 400, body: '{"valid":false,"code":"REVOKED","message":""}' }]
    expect(await client.validate()).toMatchObject({ code: 'REVOKED' })
    expect(await refreshing).toMatchObject({ refreshed: false })
    expect(service.license.rejectedAs).toBeNull()
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ reason: 'NO_FILE' })
  })
})

describe.concurrent('refreshFile', () => {
  test('refreshFile returns REFRESHED and the expiry of the license', async () => {
    const { client, service } = await startWorld()
    const { expiresAt } = service.license
    const result = await client.refreshFile()
    expect(result).toMatchObject({ source: 'online', refreshed: true, code: 'REFRESHED', expiresAt })
  })

  test('refreshFile returns the code of a rejection', async () => {
    const { client, service } = await startWorld()
    service.license.rejectedAs = 'SUSPENDED'
    const rejection = { source: 'online', refreshed: false, code: 'SUSPENDED', message: 'The check was rejected.' }
    expect(await client.refreshFile()).toEqual(rejection)
  })

  test('refreshFile returns UNREACHABLE or CONFIGURATION', async () => {
    const { client, gateway, restart } = await startWorld()
    expect(await restart({ apiKey: 'x' }).refreshFile()).toMatchObject({
      code: 'CONFIGURATION',
      reason: 'UNAUTHORIZED',
    })
    gateway.fault = { kind: 'respond', status: 500 }
    const outage = { source: 'offline', refreshed: false, code: 'UNREACHABLE', cause: 'SERVER_ERROR' }
    expect(await client.refreshFile()).toEqual({
      ...outage,
      message: 'The license service cannot be reached. Connect to the internet and try again.',
      detail: 'The service responded with status 500.',
    })
  })

  test('keeps the stored file when an impostor sends a file signed by another key', async () => {
    const { client, service, gateway } = await startWorldWithFile()
    const honest = service.signer
    service.signer = generateKeyPair()
    expect(await client.refreshFile()).toMatchObject({ refreshed: false, code: 'BAD_FILE', reason: 'UNKNOWN_KEY' })
    service.signer = { ...generateKeyPair(), keyId: honest.keyId }
    expect(await client.refreshFile()).toMatchObject({ refreshed: false, code: 'BAD_FILE', reason: 'BAD_SIGNATURE' })
    gateway.next = [{ kind: 'respond', status: 200, body: '<html>' }]
    expect(await client.refreshFile()).toMatchObject({ refreshed: false, code: 'BAD_FILE', reason: 'BAD_SIGNATURE' })
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
  })

  test('refreshFile returns the rejection of another license', async () => {
    const { service, restart } = await startWorld()
    const client = restart({ licenseKey: 'AAAA-BBBB-CCCC-DDDD' })
    service.licenseKey = 'AAAA-BBBB-CCCC-DDDD'
    await client.refreshFile()
    service.licenseKey = 'OTHER'
    expect(await client.refreshFile()).toMatchObject({ refreshed: false, code: 'NOT_FOUND' })
  })
})

describe.concurrent('a storage that fails', () => {
  const broken = {
    ...memoryStorage(),
    async write() {
      throw new Error('disk full')
    },
  }

  test('reports a failing storage while the online check succeeds', async () => {
    const errors: unknown[] = []
    const { client } = await startWorld({ storage: broken, onStorageError: (error) => errors.push(error) })
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(await client.refreshFile()).toEqual({ source: 'online', refreshed: false, code: 'NOT_STORED' })
    expect(errors).not.toEqual([])
  })

  test('returns NO_FILE when the storage cannot be read', async () => {
    const unreadable = { ...memoryStorage(), read: () => Promise.reject(new Error('unplugged')) }
    const { client, gateway } = await startWorld({ storage: unreadable })
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: false, reason: 'NO_FILE' })
  })
})

describe.concurrent('a storage that fails later', () => {
  test.each<[string, StorageFault]>([
    ['cannot be written', 'write'],
    ['cannot be read for a while', 'read'],
  ])('keeps a rejected file rejected when the storage %s', async (_how, fault) => {
    const { storage, failing } = failingStorage()
    const { client, service, gateway, restart } = await startWorldWithFile({ storage })
    failing.add(fault)
    service.license.rejectedAs = 'REVOKED'
    expect(await client.validate()).toMatchObject({ source: 'online', code: 'REVOKED' })
    await gateway.stop()
    failing.delete('read')
    const rejected = { source: 'offline', valid: false, reason: 'NO_FILE' }
    expect(await client.validate()).toMatchObject(rejected)
    failing.clear()
    expect(await client.validate()).toMatchObject(rejected)
    expect(await restart().validate(), 'the pending change is written').toMatchObject(rejected)
  })

  test.each<[string, StorageFault]>([
    ['cannot be written', 'write'],
    ['cannot be read for a while', 'read'],
  ])('rejects a clock that was set back when the storage %s', async (_how, fault) => {
    const { storage, failing } = failingStorage()
    const { client, gateway, clock, restart } = await startWorldWithFile({ storage })
    gateway.fault = { kind: 'drop' }
    failing.add(fault)
    clock.aheadMs = 31 * DAY_MS
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: false })
    failing.delete('read')
    clock.aheadMs = DAY_MS
    const setBack = { source: 'offline', valid: false, reason: 'CLOCK_SET_BACK' }
    expect(await client.validate()).toMatchObject(setBack)
    failing.clear()
    expect(await client.validate()).toMatchObject(setBack)
    expect(await restart().validate(), 'the pending change is written').toMatchObject(setBack)
  })

  test("uses the service's time instead of the time of a wrong clock", async () => {
    const { storage, failing } = failingStorage()
    const { client, gateway, clock } = await startWorldWithFile({ storage })
    failing.add('write')
    gateway.fault = { kind: 'drop' }
    clock.aheadMs = 10 * DAY_MS
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    clock.aheadMs = 0
    gateway.fault = { kind: 'none' }
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    await client.settled()
    gateway.fault = { kind: 'drop' }
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
  })

  test('uses a good file as soon as the storage can be read again', async () => {
    const { storage, failing } = failingStorage()
    const { client, gateway } = await startWorldWithFile({ storage })
    await gateway.stop()
    failing.add('read')
    expect(await client.validate()).toMatchObject({ source: 'offline', reason: 'NO_FILE' })
    failing.clear()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
  })
})

describe.concurrent('a storage that never settles', () => {
  const never = () => new Promise<never>(() => undefined)

  test('a pending read delays a call by at most the timeout', async () => {
    const { gateway, restart } = await startWorldWithFile()
    const errors: unknown[] = []
    const storage = { ...memoryStorage(), read: never }
    const client = restart({ storage, timeoutMs: 300, onStorageError: (error) => errors.push(error) })
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: false, reason: 'NO_FILE' })
    expect(await client.importFile('no file')).toMatchObject({ imported: false })
    expect(errors).not.toEqual([])
  })

  test('a pending write delays a rejection by at most the timeout', async () => {
    const { service, gateway, storage, restart } = await startWorldWithFile()
    const client = restart({ storage: { ...storage, write: never }, timeoutMs: 2000 })
    service.license.rejectedAs = 'REVOKED'
    expect(await client.validate()).toMatchObject({ source: 'online', code: 'REVOKED' })
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: false, reason: 'NO_FILE' })
  })

  test('keeps a rejected file rejected after a late write of an old text', async () => {
    const { service, gateway, storage, restart } = await startWorldWithFile()
    // Removes the stored time, so that the first check has a change to write even if its `Date` equals the stored one.
    await storage.write(((await storage.read()) ?? '').replace(/"latestSeenMs":\d+/, '"latestSeenMs":0'))
    const writes: (() => void)[] = []
    const slow: LicenseStorage = {
      read: () => storage.read(),
      write: (text) => new Promise((resolve) => writes.push(() => resolve(storage.write(text)))),
    }
    const client = restart({ storage: slow, timeoutMs: 2000 })
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    await client.settled()
    expect(writes, 'the old text is under way').toHaveLength(1)
    service.license.rejectedAs = 'REVOKED'
    expect(await client.validate()).toMatchObject({ source: 'online', code: 'REVOKED' })
    expect(writes).toHaveLength(1)
    writes.shift()?.()
    await gateway.stop()
    const checked = client.validate()
    await vi.waitFor(() => expect(writes).toHaveLength(1), { timeout: 10_000 })
    writes.shift()?.()
    const rejected = { source: 'offline', valid: false, reason: 'NO_FILE' }
    expect(await checked).toMatchObject(rejected)
    expect(await restart().validate()).toMatchObject(rejected)
  })
})

describe.concurrent('a callback of the app', () => {
  test.each<[string, () => void]>([
    [
      'throws',
      () => {
        throw new Error('mistake of the app')
      },
    ],
    ['rejects', () => Promise.reject(new Error('mistake of the app'))],
  ])('a callback that %s has no effect on the call', async (_how, fail) => {
    let isPlugged = false
    const inner = memoryStorage()
    const storage = { ...inner, read: () => (isPlugged ? inner.read() : Promise.reject(new Error('unplugged'))) }
    const { client } = await startWorld({ storage, onStorageError: fail, onRefresh: fail })
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    await client.settled()
    isPlugged = true
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(await client.importFile('no file')).toMatchObject({ imported: false })
    expect(await client.refreshFile()).toMatchObject({ refreshed: true })
  })
})

async function validateAfterRestart(world: World): Promise<void> {
  const client = world.restart()
  expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  await client.settled()
}
