/** A clock set back does not make an old file good again. */

import { describe, expect, test } from 'vitest'

import { DAY_MS } from '../contract-suite/service/service.ts'
import { memoryStorage } from '../src/index.ts'
import { startWorld, startWorldWithFile } from './setup.ts'

const MINUTE_MS = 60_000
const setBack = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', reason: 'CLOCK_SET_BACK' }
const valid = { source: 'offline', valid: true }

describe.concurrent('offline, refuses a clock', () => {
  test('behind the issuedAt of the file', async () => {
    const { client, gateway, clock, storage } = await startWorldWithFile()
    await gateway.stop()
    // As if the app had seen no time but the file's.
    await storage.write(((await storage.read()) ?? '').replace(/"latestSeenMs":\d+/, '"latestSeenMs":0'))
    clock.aheadMs = -4 * MINUTE_MS
    expect(await client.validate()).toMatchObject(valid)
    clock.aheadMs = -6 * MINUTE_MS
    await storage.write(((await storage.read()) ?? '').replace(/"latestSeenMs":\d+/, '"latestSeenMs":0'))
    expect(await client.validate()).toMatchObject(setBack)
  })

  test("behind the service's clock, whatever the device's clock was while it was online", async () => {
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

  test('behind the last run, also after a restart', async () => {
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

  test('that was set back after the file ran out', async () => {
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
  ])('that %s, and keeps the latest time seen', async (_how, now) => {
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

  test('until a response of the service corrects the latest time seen', async () => {
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

  test('that is not consulted while the service is reachable', async () => {
    const { client, clock } = await startWorld({ storage: memoryStorage() })
    clock.aheadMs = -1000 * DAY_MS
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  })
})
