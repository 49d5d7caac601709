/** Tests the list of a license's machines, and the release of another machine. */

import { describe, expect, test } from 'vitest'

import { refOf } from '../contract-suite/service/service.ts'
import { memoryStorage } from '../src/index.ts'
import { startWorld, startWorldWithFile } from './setup.ts'

const LISTED = { source: 'online', code: 'LISTED', machines: { used: 1, max: 1 }, releasesLeft: 3 }
const lastSeenAt = '2026-11-20T09:30:00.000Z'

/** A busy machine needs longer than the default. */
const PATIENT = { timeoutMs: 30_000 }

describe.concurrent('machines and release', () => {
  test('a new machine lists the machines, releases one, and takes its slot', async () => {
    const { client, restart } = await startWorldWithFile(PATIENT)
    const other = restart({ machineId: 'machine-2', storage: memoryStorage() })
    expect(await other.activate()).toMatchObject({ code: 'TOO_MANY_MACHINES' })
    const old = { ref: refOf('machine-1'), hostname: null, lastSeenAt, current: false }
    expect(await other.machines()).toEqual({ ...LISTED, list: [old] })
    expect(await client.machines()).toEqual({ ...LISTED, list: [{ ...old, current: true }] })
    expect(await other.release(old.ref)).toEqual({ source: 'online', deactivated: true, code: 'DEACTIVATED' })
    expect(await other.activate()).toMatchObject({ valid: true })
    expect(await other.release(old.ref)).toEqual({ source: 'online', deactivated: false, code: 'NOT_ACTIVE' })
  })

  test('release keeps the stored file of this machine', async () => {
    const { client, service, gateway } = await startWorldWithFile(PATIENT)
    service.machines.set('machine-2', null)
    expect(await client.release(refOf('machine-2'))).toMatchObject({ deactivated: true })
    expect([...service.machines.keys()]).toEqual(['machine-1'])
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', code: 'VALID' })
  })

  test('machines and release apply to the generated key of a typed one', async () => {
    const { service, restart } = await startWorldWithFile(PATIENT)
    const client = restart({ licenseKey: 'k7qx93fmttrwh2zd' })
    expect(await client.machines()).toMatchObject(LISTED)
    expect(await client.release(refOf('machine-1'))).toMatchObject({ deactivated: true })
    expect(service.machines.size).toBe(0)
  })

  test('machines returns the reason why the service lists none', async () => {
    const { client, service, restart } = await startWorldWithFile(PATIENT)
    service.listsMachines = false
    expect(await client.machines()).toEqual({
      source: 'online',
      code: 'NOT_ENABLED',
      message: 'The list is switched off.',
    })
    expect(await client.release(refOf('machine-1'))).toMatchObject({ code: 'NOT_ENABLED' })
    expect(await restart({ licenseKey: 'other' }).machines()).toMatchObject({ code: 'NOT_FOUND' })
    expect(await restart({ apiKey: 'x' }).machines()).toMatchObject({ code: 'CONFIGURATION', reason: 'UNAUTHORIZED' })
  })

  test.each([
    [200, '<html>Please log in</html>'],
    [200, '{"used":1,"max":1,"releasesLeft":1}'],
    [200, '{"used":"1","max":1,"releasesLeft":1,"machines":[]}'],
    [200, '{"used":1,"max":1,"releasesLeft":1,"machines":[{"ref":1}]}'],
    [200, '{"used":1,"max":"1","releasesLeft":1,"machines":[null]}'],
    [403, '<html>Blocked</html>'],
    [409, '{"detail":"No."}'],
    [503, '{"code":"UNAVAILABLE","detail":"No."}'],
  ])('machines returns UNREACHABLE for status %i with %s', async (status, body) => {
    const { client, gateway } = await startWorld({ timeoutMs: 300 })
    gateway.fault = { kind: 'respond', status, body }
    expect(await client.machines()).toMatchObject({ source: 'offline', code: 'UNREACHABLE' })
  })
})
