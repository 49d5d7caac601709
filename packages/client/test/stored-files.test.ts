/** The stored file of a license key: which responses end its use, which bring it back, and which leave it alone. */

import { describe, expect, test, vi } from 'vitest'

import type { Fault } from '../contract-suite/service/gateway.ts'
import { startWorld, startWorldWithFile, storedFileOf, type World } from './setup.ts'

const FILE = '/api/v1/licenses/file'
const online = { source: 'online', valid: true }
const offline = { source: 'offline', valid: true }
const noFile = { source: 'offline', valid: false, reason: 'NO_FILE' }

describe.concurrent('a mistyped license key', () => {
  test('does not end the file of the right one', async () => {
    const { client, gateway, restart } = await startWorldWithFile()
    const mistyped = restart({ licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
    expect(await mistyped.validate()).toMatchObject({ source: 'online', code: 'NOT_FOUND' })
    await gateway.stop()
    expect(await mistyped.validate()).toMatchObject(noFile)
    expect(await client.validate()).toMatchObject(offline)
    expect(await restart().validate(), 'after a restart').toMatchObject(offline)
  })

  test('does not end the file that an earlier version of the client stored', async () => {
    const { gateway, storage, restart } = await startWorldWithFile()
    await storeAsVersion1(storage)
    const mistyped = restart({ licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
    expect(await mistyped.validate()).toMatchObject({ source: 'online', code: 'NOT_FOUND' })
    await gateway.stop()
    expect(await restart().validate()).toMatchObject(offline)
  })

  test('that belongs to another license has a file of its own', async () => {
    const { service, gateway, restart } = await startWorldWithFile()
    const first = service.licenseKey
    service.licenseKey = 'AAAA-BBBB-CCCC-DDDD'
    const other = restart({ licenseKey: service.licenseKey })
    expect(await other.validate()).toMatchObject(online)
    await other.settled()
    await gateway.stop()
    expect(await restart({ licenseKey: first }).validate()).toMatchObject(offline)
    expect(await restart({ licenseKey: 'AAAA-BBBB-CCCC-DDDD' }).validate()).toMatchObject(offline)
  })
})

test('keeps the files of the ten license keys that were fetched last', async () => {
  const world = await startWorld()
  const { service, gateway, restart } = world
  service.license.maxMachines = null
  const keys = Array.from({ length: 11 }, (_, number) => `KEY-${number}`)
  for (const licenseKey of keys) {
    service.licenseKey = licenseKey
    expect(await restart({ licenseKey }).refreshFile()).toMatchObject({ refreshed: true })
  }
  await gateway.stop()
  expect(await restart({ licenseKey: 'KEY-0' }).validate()).toMatchObject(noFile)
  for (const licenseKey of keys.slice(1)) expect(await restart({ licenseKey }).validate()).toMatchObject(offline)
})

test('uses the file that an earlier version of the client stored', async () => {
  const { gateway, storage, restart } = await startWorldWithFile()
  await storeAsVersion1(storage)
  await gateway.stop()
  expect(await restart().validate()).toMatchObject(offline)
})

describe.concurrent('a rejection', () => {
  test('wins offline, also after a restart, and names its code', async () => {
    const { client, service, gateway, restart } = await startWorldWithFile()
    service.license.rejectedAs = 'SUSPENDED'
    await client.validate()
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ ...noFile, rejectedAs: 'SUSPENDED' })
    expect(await restart().validate()).toMatchObject({ ...noFile, rejectedAs: 'SUSPENDED' })
  })

  test('keeps the file, which a later VALID allows again without a download', async () => {
    const world = await startWorldWithFile()
    const { client, service, gateway, restart } = world
    service.license.rejectedAs = 'SUSPENDED'
    await client.validate()
    service.license.rejectedAs = null
    expect(await client.validate()).toMatchObject(online)
    await client.settled()
    expect(gateway.requests).not.toContain(FILE)
    await gateway.stop()
    expect(await client.validate()).toMatchObject(offline)
    expect(await restart().validate()).toMatchObject(offline)
  })

  test('holds against a VALID that was requested before it', async () => {
    const { client, gateway } = await startWorldWithFile()
    gateway.next = [{ kind: 'slow', delayMs: 1_000 }, rejection({ code: 'REVOKED' })]
    const slow = client.validate()
    await vi.waitFor(() => expect(gateway.requests).toHaveLength(1))
    expect(await client.validate()).toMatchObject({ code: 'REVOKED' })
    // The file that the late VALID asks for would be a newer one.
    gateway.fault = { kind: 'drop' }
    expect(await slow).toMatchObject(online)
    await client.settled()
    expect(await client.validate()).toMatchObject(noFile)
  })

  test('by the deactivation of this machine ends when the machine is active again', async () => {
    const { client, gateway } = await startWorldWithFile()
    expect(await client.deactivate()).toMatchObject({ deactivated: true })
    gateway.fault = { kind: 'drop' }
    expect(await client.validate()).toMatchObject({ ...noFile, rejectedAs: 'DEACTIVATED' })
    gateway.fault = { kind: 'none' }
    expect(await client.activate()).toMatchObject(online)
    await client.settled()
    gateway.fault = { kind: 'drop' }
    expect(await client.validate()).toMatchObject(offline)
  })
})

const implausible: [string, Fault][] = [
  ['a code that no version has', rejection({ code: 'bad_request' })],
  ['another status in its body', rejection({ status: 422 })],
  ['no verdict in its body', { kind: 'respond', status: 400, body: '{"code":"REVOKED","status":400}' }],
  ['a code without `valid`', { kind: 'respond', status: 200, body: '{"code":"REVOKED"}' }],
  ['a rejection of v2 under status 200', { ...rejection({}), status: 200 }],
  ['`valid` as text', rejection({ valid: 'false' })],
]

describe.concurrent('a response that is no plausible verdict never ends the file', () => {
  test.each(implausible)('%s', async (_name, fault) => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9_000 })
    gateway.fault = fault
    expect(await client.validate()).toMatchObject({ ...offline, cause: 'UNEXPECTED_ANSWER' })
    gateway.fault = { kind: 'drop' }
    expect(await client.validate()).toMatchObject(offline)
  })
})

function rejection(changed: object): Extract<Fault, { kind: 'respond' }> {
  const body = { valid: false, status: 400, message: 'Refused.', code: 'REVOKED', ...changed }
  return { kind: 'respond', status: 400, body: JSON.stringify(body) }
}

async function storeAsVersion1(storage: World['storage']): Promise<void> {
  const file = await storedFileOf(storage)
  await storage.write(JSON.stringify({ version: 1, file, latestSeenMs: Date.now() - 1_000 }))
}
