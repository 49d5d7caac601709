import { describe, expect, test } from 'vitest'

import { createLicenseClient, memoryStorage } from '../src/index.ts'
import { startWorld, startWorldWithFile, storedFileOf } from './setup.ts'

describe.concurrent('activate', () => {
  test('activate takes a slot under the host name and stores a file', async () => {
    const { client, service, gateway } = await startWorld({ hostname: "Ada's laptop" })
    expect(await client.activate()).toMatchObject({ source: 'online', valid: true, code: 'VALID' })
    expect(service.machines).toEqual(new Map([['machine-1', "Ada's laptop"]]))
    await client.settled()
    await gateway.stop()
    expect(await client.activate()).toMatchObject({ source: 'offline', valid: true })
  })

  test('activate returns the number of slots when none is free', async () => {
    const { client, restart } = await startWorldWithFile()
    expect(await client.activate()).toMatchObject({ valid: true })
    expect(await restart({ machineId: 'machine-2', storage: memoryStorage() }).activate()).toEqual({
      source: 'online',
      valid: false,
      code: 'TOO_MANY_MACHINES',
      expiresAt: null,
      message: 'The check was rejected.',
      machines: { used: 1, max: 1 },
    })
  })

  test.each([undefined, null, ''])(
    'activate returns FINGERPRINT_REQUIRED without a machine id: %j',
    async (machineId) => {
      const { restart } = await startWorld()
      expect(await restart({ machineId }).activate()).toMatchObject({ code: 'FINGERPRINT_REQUIRED' })
    },
  )
})

describe.concurrent('deactivate', () => {
  test('deactivate releases the slot and ends the use of the file', async () => {
    const { client, service, gateway } = await startWorldWithFile()
    expect(await client.deactivate()).toEqual({ source: 'online', deactivated: true, code: 'DEACTIVATED' })
    expect(service.machines.size).toBe(0)
    expect(await client.deactivate()).toEqual({ source: 'online', deactivated: false, code: 'NOT_ACTIVE' })
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', reason: 'NO_FILE' })
  })

  test('deactivate keeps the slot and the file when the service is unreachable', async () => {
    const { client, gateway } = await startWorldWithFile()
    gateway.fault = { kind: 'drop' }
    const unreachable = { source: 'offline', deactivated: false, code: 'UNREACHABLE', cause: 'NETWORK_ERROR' }
    const detail = `No connection to ${gateway.url}: UND_ERR_SOCKET.`
    const message = 'The license service cannot be reached. Connect to the internet and try again.'
    expect(await client.deactivate()).toEqual({ ...unreachable, message, detail })
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
  })

  test('deactivate returns CONFIGURATION for a wrong API key', async () => {
    const { restart } = await startWorldWithFile()
    const result = await restart({ apiKey: 'x' }).deactivate()
    expect(result).toMatchObject({ deactivated: false, code: 'CONFIGURATION', reason: 'UNAUTHORIZED' })
  })
})

describe.concurrent('importFile', () => {
  test('importFile stores a file for a machine without network access', async () => {
    const world = await startWorldWithFile()
    await world.gateway.stop()
    const file = await storedFileOf(world.storage)
    const isolated = world.restart({ storage: memoryStorage() })
    expect(await isolated.importFile(`${file}\n`)).toMatchObject({ imported: true })
    expect(await isolated.validate()).toMatchObject({ source: 'offline', valid: true })
    const other = world.restart({ storage: memoryStorage(), licenseKey: 'OTHER' })
    expect(await other.importFile(file)).toEqual({ imported: false, reason: 'WRONG_LICENSE' })
    expect(await other.importFile(file.slice(1))).toEqual({ imported: false, reason: 'BAD_SIGNATURE' })
  })
})

describe('createLicenseClient', () => {
  const good = {
    baseUrl: 'https://licenses.example.com',
    apiKey: 'kwk_x',
    publicKeys: [{ keyId: 'k', publicKey: 'MCowBQYDK2VwAyEACIrzLLjzfdBlXmCxAaSq0L+NSV5Y+UkAW/BddM/lpqM=' }],
    licenseKey: 'K',
    storage: memoryStorage(),
  }

  test('accepts valid options', () => {
    expect(() => createLicenseClient(good)).not.toThrow()
    expect(() => createLicenseClient({ ...good, timeoutMs: 2 ** 31 - 1 })).not.toThrow()
  })

  test.each(['localhost', 'app.localhost:8000', '127.0.0.1:8000', '127.1', '[::1]:8000'])(
    'accepts http to this machine: %s',
    (host) => {
      expect(() => createLicenseClient({ ...good, baseUrl: `http://${host}` })).not.toThrow()
    },
  )

  test.each(['licenses.example.com', 'localhost.example.com', '127.0.0.1.example.com', '10.0.0.1', '[::2]'])(
    'throws for http to another host unless allowHttp is true: %s',
    (host) => {
      const http = { ...good, baseUrl: `http://${host}` }
      expect(() => createLicenseClient(http)).toThrow(/baseUrl must use https.*Set allowHttp/)
      expect(() => createLicenseClient({ ...http, allowHttp: false })).toThrow(TypeError)
      expect(() => createLicenseClient({ ...http, allowHttp: true })).not.toThrow()
      expect(() => createLicenseClient({ ...http, baseUrl: `https://${host}` })).not.toThrow()
    },
  )

  test.each([
    ['baseUrl', { baseUrl: 'licenses.example.com' }],
    ['baseUrl', { baseUrl: 'file:///etc' }],
    ['baseUrl', { baseUrl: 'https://ada@licenses.example.com' }],
    ['baseUrl', { baseUrl: 'https://:secret@licenses.example.com' }],
    ['apiKey', { apiKey: '' }],
    ['apiKey', { apiKey: 'kwk_x\n' }],
    ['apiKey', { apiKey: 'kwk_…' }],
    ['publicKeys', { publicKeys: [] }],
    ['publicKeys', { publicKeys: [{ keyId: 'k', publicKey: 'nonsense' }] }],
    ['licenseKey', { licenseKey: '' }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['timeoutMs', { timeoutMs: Number.NaN }],
    ['timeoutMs', { timeoutMs: 2 ** 31 }],
    ['timeoutMs', { timeoutMs: Infinity }],
  ])('throws a TypeError that names %s', (name, wrong) => {
    expect(() => createLicenseClient({ ...good, ...wrong })).toThrow(name)
  })
})
