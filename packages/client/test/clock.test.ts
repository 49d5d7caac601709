/** Tests that an old file does not become good again when the clock is set back. */

import { describe, expect, test } from 'vitest'

import { DAY_MS } from '../contract-suite/service/service.ts'
import { memoryStorage } from '../src/index.ts'
import { startWorld, startWorldWithFile } from './setup.ts'

const MINUTE_MS = 60_000
const setBack = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', reason: 'CLOCK_SET_BACK' }
const valid = { source: 'offline', valid: true }

describe.concurrent('an offline check', () => {
  test('an offline check rejects a clock behind the issuedAt of the file', async () => {
    const { client, gateway, clock, storage } = await startWorldWithFile()
    await gateway.stop()
    // Removes the observed time from the storage. The times in the license file remain.
    await storage.write(((await storage.read()) ?? '').replace(/"latestSeenMs":\d+/, '"latestSeenMs":0'))
    clock.aheadMs = -4 * MINUTE_MS
    expect(await client.validate()).toMatchObject(valid)
    clock.aheadMs = -6 * MINUTE_MS
    await storage.write(((await storage.read()) ?? '').replace(/"latestSeenMs":\d+/, '"latestSeenMs":0'))
    expect(await client.validate()).toMatchObject(setBack)
  })

  test('rejects the stored file when the clock is behind the last `Date` of the service', async () => {
    const { client, service, gateway, clock } = await startWorld()
    service.now = () => Date.now() - 5 * DAY_MS
    clock.aheadMs = -DAY_MS
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    await client.settled()
    await gateway.stop()
    expect(await client.validate()).toMatchObject(setBack)
    clock.aheadMs = -4 * MINUTE_MS
    expect(await client.validate()).toMatchObject(valid)
  })

  test('rejects the stored file when the clock is behind the previous run, even after a restart', async () => {
    const { client, gateway, clock, restart } = await startWorldWithFile()
    await gateway.stop()
    clock.aheadMs = 10 * DAY_MS
    expect(await client.validate()).toMatchObject(valid)
    clock.aheadMs = 10 * DAY_MS - 4 * MINUTE_MS
    expect(await restart().validate()).toMatchObject(valid)
    clock.aheadMs = 10 * DAY_MS - 6 * MINUTE_MS
    expect(await restart().validate()).toMatchObject(setBack)
    clock.aheadMs = 11 * DAY_MS
    expect(await restart().validate()).toMatchObject(valid)
  })

  test('rejects a clock that was set back after the file expired', async () => {
    const { client, gateway, clock } = await startWorldWithFile()
    await gateway.stop()
    clock.aheadMs = 31 * DAY_MS
    expect(await client.validate()).toMatchObject({ reason: 'REFRESH_NEEDED' })
    clock.aheadMs = 1 * DAY_MS
    expect(await client.validate()).toMatchObject(setBack)
  })

  test.each<[string, () => number]>([
    ['returns NaN', () => Number.NaN],
    ['returns Infinity', () => Infinity],
    [
      'throws',
      () => {
        throw new Error('no clock')
      },
    ],
  ])('rejects a clock that %s, and keeps the latest observed time', async (_how, now) => {
    const { client, gateway, clock, restart } = await startWorldWithFile()
    const clockless = restart({ now })
    expect(await clockless.validate()).toMatchObject({ source: 'online', valid: true })
    await gateway.stop()
    clock.aheadMs = 10 * DAY_MS
    expect(await client.validate()).toMatchObject(valid)
    expect(await clockless.validate()).toMatchObject(setBack)
    clock.aheadMs = 9 * DAY_MS
    expect(await client.validate()).toMatchObject(setBack)
  })

  test('accepts the clock again after a response of the service has corrected the time', async () => {
    const { client, gateway, clock } = await startWorldWithFile()
    gateway.fault = { kind: 'drop' }
    clock.aheadMs = 10 * DAY_MS
    await client.validate()
    clock.aheadMs = 0
    expect(await client.validate()).toMatchObject(setBack)
    gateway.fault = { kind: 'none' }
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    gateway.fault = { kind: 'drop' }
    expect(await client.validate()).toMatchObject(valid)
  })

  test('checks online with a clock that is years behind', async () => {
    const { client, clock } = await startWorld({ storage: memoryStorage() })
    clock.aheadMs = -1000 * DAY_MS
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  })
})
