/** Tests the stored file of a license key: the responses that end its use, allow it again, or have no effect. */

import { describe, expect, test, vi } from 'vitest'

import type { Fault } from '../contract-suite/service/gateway.ts'
import { startWorld, startWorldWithFile, storedFileOf, type World } from './setup.ts'

const FILE = '/api/v1/licenses/file'
const online = { source: 'online', valid: true }
const offline = { source: 'offline', valid: true }
const noFile = { source: 'offline', valid: false, reason: 'NO_FILE' }

describe.concurrent('a mistyped license key', () => {
  test('a mistyped key does not end the use of the file of the correct key', async () => {
    const { client, gateway, restart } = await startWorldWithFile()
    const mistyped = restart({ licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
    expect(await mistyped.validate()).toMatchObject({ source: 'online', code: 'NOT_FOUND' })
    await gateway.stop()
    expect(await mistyped.validate()).toMatchObject(noFile)
    expect(await client.validate()).toMatchObject(offline)
    expect(await restart().validate(), 'after a restart').toMatchObject(offline)
  })

  test('a mistyped key does not end the use of a file that an earlier version stored', async () => {
    const { gateway, storage, restart } = await startWorldWithFile()
    await storeAsVersion1(storage)
    const mistyped = restart({ licenseKey: 'K7QX-93FM-TTRW-H2ZE' })
    expect(await mistyped.validate()).toMatchObject({ source: 'online', code: 'NOT_FOUND' })
    await gateway.stop()
    expect(await restart().validate()).toMatchObject(offline)
  })

  test('a mistyped key of another license gets a separate file', async () => {
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

test('keeps the ten most recently fetched files', async () => {
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
  test('a rejection is returned offline with its code, even after a restart', async () => {
    const { client, service, gateway, restart } = await startWorldWithFile()
    service.license.rejectedAs = 'SUSPENDED'
    await client.validate()
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ ...noFile, rejectedAs: 'SUSPENDED' })
    expect(await restart().validate()).toMatchObject({ ...noFile, rejectedAs: 'SUSPENDED' })
  })

  test('a VALID verdict after a rejection allows the stored file again without a download', async () => {
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

  test('a rejection takes precedence over a VALID verdict that was requested earlier', async () => {
    const { client, gateway } = await startWorldWithFile()
    gateway.next = [{ kind: 'slow', delayMs: 1_000 }, rejection({ code: 'REVOKED' })]
    const slow = client.validate()
    await vi.waitFor(() => expect(gateway.requests).toHaveLength(1))
    expect(await client.validate()).toMatchObject({ code: 'REVOKED' })
    // The fetch after the late VALID verdict must not store a newer file.
    gateway.fault = { kind: 'drop' }
    expect(await slow).toMatchObject(online)
    await client.settled()
    expect(await client.validate()).toMatchObject(noFile)
  })

  test('an activation allows the file again after a deactivation', async () => {
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
  ['a code in lower case', rejection({ code: 'bad_request' })],
  ['another status in its body', rejection({ status: 422 })],
  ['no verdict in its body', { kind: 'respond', status: 400, body: '{"code":"REVOKED","status":400}' }],
  ['a code without `valid`', { kind: 'respond', status: 200, body: '{"code":"REVOKED"}' }],
  ['a rejection of v2 under status 200', { ...rejection({}), status: 200 }],
  ['`valid` as text', rejection({ valid: 'false' })],
]

describe.concurrent('an invalid verdict', () => {
  test.each(implausible)('an invalid verdict does not end the use of the file: %s', async (_name, fault) => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9_000 })
    gateway.fault = fault
    expect(await client.validate()).toMatchObject({ ...offline, cause: 'UNEXPECTED_ANSWER' })
    gateway.fault = { kind: 'drop' }
    expect(await client.validate()).toMatchObject(offline)
  })
})

function rejection(changed: object): Extract<Fault, { kind: 'respond' }> {
  const body = { valid: false, status: 400, message: 'The check was rejected.', code: 'REVOKED', ...changed }
  return { kind: 'respond', status: 400, body: JSON.stringify(body) }
}

async function storeAsVersion1(storage: World['storage']): Promise<void> {
  const file = await storedFileOf(storage)
  await storage.write(JSON.stringify({ version: 1, file, latestSeenMs: Date.now() - 1_000 }))
}
