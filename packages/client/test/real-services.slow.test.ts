/**
 * Tests the client with the real validator and management service, which hang, fail, are killed, or are replaced by an impostor.
 * The gateway routes like a balancer in production. The tests share one app and run in order.
 */

import { generateKeyPair } from '@keyward/license-file'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'

import { startGateway } from '../contract-suite/service/gateway.ts'
import { type Service, startService } from '../contract-suite/service/service.ts'
import { type ClientOptions, createLicenseClient, memoryStorage } from '../src/index.ts'
import { EXPIRES_AT, startPrograms } from './programs.ts'

const programs = await startPrograms()
const publicKeys = await programs.publicKeys()
const { vendor } = programs
let impostor: Service | null = null
const gateway = await startGateway((path) => {
  if (impostor !== null) return impostor.url
  return path.startsWith('/api/v1/licenses') ? programs.management.url : programs.validator.url
})

const storage = memoryStorage()
const client = clientWith()

function clientWith(options: Partial<ClientOptions> = {}) {
  return createLicenseClient({
    baseUrl: gateway.url,
    apiKey: vendor.apiKey,
    publicKeys,
    licenseKey: vendor.licenseKey,
    machineId: 'machine-1',
    hostname: "Ada's laptop",
    storage,
    ...options,
  })
}

beforeEach(() => {
  gateway.fault = { kind: 'none' }
  impostor = null
})
afterAll(async () => {
  await gateway.stop()
  await programs.close()
})

const online = { source: 'online', valid: true, code: 'VALID', expiresAt: EXPIRES_AT }
const offline = { source: 'offline', valid: true, code: 'VALID', expiresAt: EXPIRES_AT }

/** Repeats a call every 50 ms, because on a slow machine the first call may exceed the client's time budget. */
const soon = { interval: 50 }

test('takes the slot and stores a file at the first activation', async () => {
  expect(await client.refreshFile()).toMatchObject({ refreshed: false, code: 'MACHINE_NOT_ACTIVE' })
  expect(await client.activate()).toEqual(online)
  await client.settled()
  expect(await client.refreshFile()).toMatchObject({ refreshed: true, expiresAt: EXPIRES_AT })
  const machines = await vendor.call('GET', `licenses/${vendor.licenseId}/machines`)
  expect(machines).toMatchObject({ data: [{ machineId: 'machine-1', hostname: "Ada's laptop" }] })
})

test('rejects another machine when no slot is free', async () => {
  const other = clientWith({ machineId: 'machine-2', storage: memoryStorage() })
  const rejected = { source: 'online', valid: false, code: 'TOO_MANY_MACHINES', machines: { used: 1, max: 1 } }
  expect(await other.activate()).toMatchObject(rejected)
  expect(await other.refreshFile()).toMatchObject({ refreshed: false, code: 'TOO_MANY_MACHINES' })
})

test('treats an empty machine id as absent', async () => {
  const { productId, customerId } = await vendor.call('GET', `licenses/${vendor.licenseId}`)
  const policy = { type: 'SUBSCRIPTION', maxMachines: null, expiresAt: EXPIRES_AT }
  const { key } = await vendor.call('POST', 'licenses', { productId, customerId, policy })
  const unlimited = clientWith({ licenseKey: String(key), machineId: '', storage: memoryStorage() })
  await expect.poll(() => unlimited.validate(), soon).toEqual(online)
  expect(await unlimited.refreshFile()).toMatchObject({ refreshed: true })
})

describe('the stored file', () => {
  test('the stored file decides while the validator hangs', async () => {
    const impatient = clientWith({ timeoutMs: 800 })
    programs.validator.process.kill('SIGSTOP')
    try {
      // The kernel stops the threads a moment after the signal.
      await expect.poll(() => impatient.validate(), soon).toMatchObject({ ...offline, cause: 'TIMEOUT' })
    } finally {
      programs.validator.process.kill('SIGCONT')
    }
    await expect.poll(() => client.validate(), soon).toEqual(online)
  })

  test('the stored file is not used for a slow response within the time budget', async () => {
    gateway.fault = { kind: 'slow', delayMs: 200 }
    expect(await client.validate()).toEqual(online)
  })

  test('the stored file decides while the validator responds with 500', async () => {
    gateway.fault = { kind: 'respond', status: 500 }
    expect(await client.validate()).toMatchObject({ ...offline, cause: 'SERVER_ERROR' })
  })

  test('the stored file decides after a response that is cut', async () => {
    gateway.fault = { kind: 'cut' }
    expect(await client.validate()).toMatchObject({ ...offline, cause: 'NETWORK_ERROR' })
  })

  test('the stored file decides from the kill of the validator until its restart', async () => {
    programs.validator.process.kill('SIGKILL')
    expect(await clientWith({ baseUrl: programs.validator.url }).validate()).toMatchObject(offline)
    expect(await client.validate()).toMatchObject({ ...offline, cause: 'SERVER_ERROR' })
    await programs.restartValidator()
    expect(await client.validate()).toEqual(online)
  })

  test('the stored file is not replaced by a file of an impostor with another key', async () => {
    impostor = await startService()
    impostor.apiKey = vendor.apiKey
    impostor.licenseKey = vendor.licenseKey
    impostor.machines.set('machine-1', null)
    const unknownKey = { refreshed: false, code: 'BAD_FILE', reason: 'UNKNOWN_KEY' }
    await expect.poll(() => client.refreshFile(), soon).toMatchObject(unknownKey)
    impostor.signer = { ...generateKeyPair(), keyId: publicKeys[0]?.keyId ?? '' }
    expect(await client.refreshFile()).toMatchObject({ refreshed: false, code: 'BAD_FILE', reason: 'BAD_SIGNATURE' })
    await impostor.close()
    expect(await client.validate()).toMatchObject(offline)
  })
})

test('returns the reason of each configuration error', async () => {
  expect(await clientWith({ apiKey: 'kwk_wrong' }).validate()).toMatchObject({ reason: 'UNAUTHORIZED', status: 401 })
  expect(await clientWith({ baseUrl: `${gateway.url}/x` }).validate()).toMatchObject({ reason: 'WRONG_ADDRESS' })
  const tooLong = clientWith({ machineId: 'm'.repeat(600) })
  expect(await tooLong.validate()).toMatchObject({ reason: 'INVALID_REQUEST', status: 422 })
  expect(await clientWith({ licenseKey: 'NOBODY-HAS-IT' }).validate()).toMatchObject({ code: 'NOT_FOUND' })
  gateway.fault = { kind: 'drop' }
  expect(await client.validate(), 'the file of the right key is still good').toMatchObject(offline)
})

test('refreshes the file after a rotation only in an app that has the new key', async () => {
  await vendor.call('POST', 'signing-keys/rotate')
  const unknownKey = { refreshed: false, code: 'BAD_FILE', reason: 'UNKNOWN_KEY' }
  await expect.poll(() => client.refreshFile(), soon).toMatchObject(unknownKey)
  gateway.fault = { kind: 'drop' }
  expect(await client.validate()).toMatchObject(offline)
  gateway.fault = { kind: 'none' }
  await expect.poll(async () => (await programs.publicKeys()).length, soon).toBe(2)
  const updated = clientWith({ publicKeys: await programs.publicKeys() })
  expect(await updated.refreshFile()).toMatchObject({ refreshed: true })
  gateway.fault = { kind: 'drop' }
  expect(await updated.validate()).toMatchObject(offline)
  expect(await client.validate()).toMatchObject({ reason: 'UNKNOWN_KEY' })
})

test('releases a slot for another machine', async () => {
  await expect.poll(() => client.deactivate(), soon).toMatchObject({ deactivated: true })
  const other = clientWith({ machineId: 'machine-2', storage: memoryStorage() })
  await expect.poll(() => other.validate(), soon).toEqual(online)
  await expect.poll(() => client.validate(), soon).toMatchObject({ valid: false, code: 'TOO_MANY_MACHINES' })
  await expect.poll(() => other.deactivate(), soon).toMatchObject({ deactivated: true })
})

test('allows a revoked license offline until the first response of the service', async () => {
  const updated = clientWith({ publicKeys: await programs.publicKeys() })
  expect(await updated.activate()).toEqual(online)
  await updated.settled()
  gateway.fault = { kind: 'drop' }
  await vendor.call('POST', `licenses/${vendor.licenseId}/revoke`)
  expect(await updated.validate()).toMatchObject(offline)
  gateway.fault = { kind: 'none' }
  const revoked = { source: 'online', valid: false, code: 'REVOKED' }
  await expect.poll(() => updated.validate(), soon).toMatchObject(revoked)
  expect(await updated.refreshFile()).toMatchObject({ refreshed: false, code: 'REVOKED' })
  gateway.fault = { kind: 'drop' }
  expect(await updated.validate()).toMatchObject({ source: 'offline', valid: false, reason: 'NO_FILE' })
})
