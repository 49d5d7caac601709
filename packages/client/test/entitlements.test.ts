import { describe, expect, test } from 'vitest'

import { memoryStorage } from '../src/index.ts'
import { startWorld, startWorldWithFile, storedFileOf } from './setup.ts'

describe.concurrent('entitlements', () => {
  test('valid results contain the entitlements with the option, online and offline', async () => {
    const { client, gateway } = await startWorldWithFile({ entitlements: true })
    const entitlements = { edition: 'pro', seats: 5 }
    expect(await client.validate()).toMatchObject({ source: 'online', entitlements })
    expect(await client.activate()).toMatchObject({ source: 'online', entitlements })
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', entitlements })
  })

  test('results contain no entitlements without the option', async () => {
    const { client, gateway } = await startWorldWithFile()
    expect(await client.validate()).not.toHaveProperty('entitlements')
    await gateway.stop()
    expect(await client.validate()).not.toHaveProperty('entitlements')
  })

  test('entitlements are empty for a service that sends none', async () => {
    const { client, gateway, service } = await startWorld({ entitlements: true })
    service.entitlements = null
    expect(await client.validate()).toMatchObject({ valid: true, entitlements: {} })
    await client.settled()
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true, entitlements: {} })
  })

  test('rejections contain no entitlements', async () => {
    const { client, service } = await startWorld({ entitlements: true })
    service.license.rejectedAs = 'SUSPENDED'
    expect(await client.validate()).not.toHaveProperty('entitlements')
  })
})

describe.concurrent('productId', () => {
  test('accepts files of the product for a productId in upper or lower case', async () => {
    const { gateway, restart, service } = await startWorldWithFile()
    await gateway.stop()
    const productId = service.productId?.toUpperCase()
    expect(await restart({ productId }).validate()).toMatchObject({ source: 'offline', valid: true })
  })

  test('rejects files of another product and does not store them', async () => {
    const { gateway, refreshes, restart, storage } = await startWorldWithFile()
    const other = { productId: '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a03' }
    const file = await storedFileOf(storage)
    const empty = memoryStorage()
    expect(await restart({ ...other, storage: empty }).refreshFile()).toMatchObject({ reason: 'WRONG_PRODUCT' })
    expect(await restart({ ...other, storage: empty }).importFile(file)).toEqual({
      imported: false,
      reason: 'WRONG_PRODUCT',
    })
    await gateway.stop()
    expect(await restart(other).validate()).toMatchObject({ code: 'OFFLINE_REFUSED', reason: 'WRONG_PRODUCT' })
    expect(refreshes).toMatchObject([{ refreshed: true }])
  })

  test('rejects files without a product id', async () => {
    const { client, gateway, restart, service } = await startWorld()
    const { productId } = service
    service.productId = null
    await client.validate()
    await client.settled()
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    expect(await restart({ productId }).validate()).toMatchObject({ reason: 'WRONG_PRODUCT' })
  })

  test('throws for an empty productId', async () => {
    const { restart } = await startWorld()
    expect(() => restart({ productId: '' })).toThrow('productId must not be empty')
  })
})
