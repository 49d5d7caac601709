/** Tests the client strategy (docs/api.md#c1 to #c3): the cases in which the service or the file decides. */

import { describe, expect, test } from 'vitest'

import type { Fault } from '../contract-suite/service/gateway.ts'
import { DAY_MS } from '../contract-suite/service/service.ts'
import { memoryStorage } from '../src/index.ts'
import { startWorld, startWorldWithFile } from './setup.ts'

describe.concurrent('a response of the service', () => {
  test('a response with 200 is VALID', async () => {
    const { client, service } = await startWorld()
    const { expiresAt } = service.license
    expect(await client.validate()).toEqual({ source: 'online', valid: true, code: 'VALID', expiresAt })
  })

  test('a response with 200 has expiresAt null for a license that never expires', async () => {
    const { client, service } = await startWorld()
    service.license.expiresAt = null
    expect(await client.validate()).toEqual({ source: 'online', valid: true, code: 'VALID', expiresAt: null })
  })

  test.each([
    'NOT_FOUND',
    'BLACKLISTED',
    'REVOKED',
    'SUSPENDED',
    'EXPIRED',
    'FINGERPRINT_REQUIRED',
    'TOO_MANY_MACHINES',
  ])('a response with 400 returns %s even if a good file is stored', async (code) => {
    const { client, service } = await startWorldWithFile()
    service.license.rejectedAs = code
    const rejection = { source: 'online', valid: false, code, expiresAt: null, message: 'The check was rejected.' }
    expect(await client.validate()).toEqual(rejection)
  })

  test('a response with 400 returns REJECTED for a code of a later version', async () => {
    const { client, service } = await startWorldWithFile()
    service.license.rejectedAs = 'MOON_PHASE'
    expect(await client.validate()).toMatchObject({ source: 'online', valid: false, code: 'REJECTED' })
  })

  test('uses a verdict that arrives late but within the time budget', async () => {
    const { client, gateway } = await startWorldWithFile()
    gateway.fault = { kind: 'slow', delayMs: 300 }
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  })

  test('returns REVOKED after an offline check with a good file', async () => {
    const { client, service, gateway } = await startWorldWithFile()
    gateway.fault = { kind: 'drop' }
    service.license.rejectedAs = 'REVOKED'
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    gateway.fault = { kind: 'none' }
    expect(await client.validate()).toMatchObject({ source: 'online', valid: false, code: 'REVOKED' })
  })

  test('a rejection ends the use of the file in later outages', async () => {
    const { client, service, gateway, restart } = await startWorldWithFile()
    service.license.rejectedAs = 'REVOKED'
    await client.validate()
    await gateway.stop()
    const rejected = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', reason: 'NO_FILE' }
    expect(await client.validate()).toMatchObject(rejected)
    expect(await restart().validate()).toMatchObject(rejected)
  })
})

const html = { headers: { 'content-type': 'text/html' }, body: '<html>Please log in to the network</html>' }
const verdict = JSON.stringify({ valid: true, status: 200, message: '', code: 'VALID', expiresAt: null })

const outages: [string, Fault | 'stopped', string][] = [
  ['nothing listens', 'stopped', 'NETWORK_ERROR'],
  ['the connection is dropped', { kind: 'drop' }, 'NETWORK_ERROR'],
  ['the response is cut in the middle of its body', { kind: 'cut' }, 'NETWORK_ERROR'],
  ['no response comes in time', { kind: 'hang' }, 'TIMEOUT'],
  [
    'the request arrived too slowly',
    { kind: 'respond', status: 408, body: '{"status":408,"message":"Too slow.","code":"REQUEST_TIMEOUT"}' },
    'TIMEOUT',
  ],
  ['the response arrives after the time budget', { kind: 'slow', delayMs: 9000 }, 'TIMEOUT'],
  ...[500, 502, 503, 504, 599].map((status): [string, Fault, string] => [
    `status ${status}`,
    { kind: 'respond', status },
    'SERVER_ERROR',
  ]),
  ['status 500 with a verdict in its body', { kind: 'respond', status: 500, body: verdict }, 'SERVER_ERROR'],
  ['a login page with status 200', { kind: 'respond', status: 200, ...html }, 'UNEXPECTED_ANSWER'],
  ['a page of a proxy with status 400', { kind: 'respond', status: 400, ...html }, 'UNEXPECTED_ANSWER'],
  ['an empty 204', { kind: 'respond', status: 204 }, 'UNEXPECTED_ANSWER'],
  ['JSON without a verdict', { kind: 'respond', status: 200, body: '{"ok":true}' }, 'UNEXPECTED_ANSWER'],
  ['a verdict that contradicts its status', { kind: 'respond', status: 400, body: verdict }, 'UNEXPECTED_ANSWER'],
  [
    'half a verdict with a matching length',
    { kind: 'respond', status: 200, body: '{"valid":true' },
    'UNEXPECTED_ANSWER',
  ],
  ['a body without end', { kind: 'respond', status: 200, body: 'x'.repeat(200_000) }, 'NETWORK_ERROR'],
  ['a redirect', { kind: 'respond', status: 302, headers: { location: '/login' } }, 'NETWORK_ERROR'],
]

describe.concurrent('an outage', () => {
  test.each(outages)('only a good file decides in an outage: %s', async (_name, fault, cause) => {
    const { service, gateway, restart } = await startWorldWithFile()
    // A case with a timeout consumes its whole budget, so this budget is short. The other cases have a long budget for busy machines.
    const timeoutMs = cause === 'TIMEOUT' ? 600 : 9000
    if (fault === 'stopped') await gateway.stop()
    else gateway.fault = fault
    const clients = [restart({ timeoutMs }), restart({ timeoutMs, storage: memoryStorage() })]
    const [withFile, withoutFile] = await Promise.all(clients.map((client) => client.validate()))
    const { expiresAt } = service.license
    expect(withFile).toMatchObject({ source: 'offline', valid: true, code: 'VALID', expiresAt, cause })
    const rejection = { source: 'offline', valid: false, code: 'OFFLINE_REFUSED', expiresAt: null, reason: 'NO_FILE' }
    const detail: unknown = expect.stringMatching(/^[A-Z].*\.$/)
    const message = 'The license could not be checked. Connect to the internet and try again.'
    expect(withoutFile).toEqual({ ...rejection, message, cause, detail })
  })
})

describe.concurrent('any other 4xx', () => {
  test.each([
    [401, 'UNAUTHORIZED'],
    [403, 'FORBIDDEN'],
    [404, 'WRONG_ADDRESS'],
    [405, 'WRONG_ADDRESS'],
    [413, 'INVALID_REQUEST'],
    [415, 'INVALID_REQUEST'],
    [422, 'INVALID_REQUEST'],
    [429, 'RATE_LIMITED'],
    [418, 'UNEXPECTED_STATUS'],
  ])('returns CONFIGURATION without using the file: %d, %s', async (status, reason) => {
    const { client, gateway } = await startWorldWithFile()
    gateway.fault = { kind: 'respond', status, body: '{"message":"No."}' }
    const error = {
      source: 'online',
      valid: false,
      code: 'CONFIGURATION',
      expiresAt: null,
      reason,
      status,
      message: 'No.',
    }
    expect(await client.validate()).toEqual(error)
    expect(gateway.requests).toHaveLength(1)
    gateway.fault = { kind: 'drop' }
    expect(await client.validate(), 'the file is still there').toMatchObject({ source: 'offline', valid: true })
  })

  test('returns UNAUTHORIZED for a wrong API key', async () => {
    const { restart } = await startWorldWithFile()
    const result = await restart({ apiKey: 'kwk_other' }).validate()
    expect(result).toMatchObject({ code: 'CONFIGURATION', reason: 'UNAUTHORIZED', message: 'No such API key.' })
  })

  test('returns WRONG_ADDRESS for a wrong base URL', async () => {
    const { restart, gateway } = await startWorldWithFile()
    const result = await restart({ baseUrl: `${gateway.url}/elsewhere` }).validate()
    expect(result).toMatchObject({ code: 'CONFIGURATION', reason: 'WRONG_ADDRESS', status: 404 })
  })
})

describe.concurrent('a stored file', () => {
  test('a stored file is good until refreshAfter, 30 days after its issue', async () => {
    const { client, gateway, clock } = await startWorldWithFile()
    await gateway.stop()
    clock.aheadMs = 30 * DAY_MS - 60_000
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    clock.aheadMs = 30 * DAY_MS + 1
    expect(await client.validate()).toMatchObject({ valid: false, reason: 'REFRESH_NEEDED' })
  })

  test('a stored file is good until the expiry if that is sooner', async () => {
    const { client, service, gateway, clock } = await startWorld()
    service.license.expiresAt = new Date(Date.now() + DAY_MS).toISOString()
    await client.validate()
    await client.settled()
    await gateway.stop()
    clock.aheadMs = DAY_MS - 60_000
    expect(await client.validate()).toMatchObject({ valid: true, expiresAt: service.license.expiresAt })
    clock.aheadMs = DAY_MS + 1
    expect(await client.validate()).toMatchObject({ valid: false, reason: 'FILE_EXPIRED' })
  })

  test('rejects a stored file for another license key, another signing key, or an alteration', async () => {
    const { gateway, service, restart, storage } = await startWorldWithFile()
    await gateway.stop()
    const stranger = [{ keyId: 'other', publicKey: 'MCowBQYDK2VwAyEACIrzLLjzfdBlXmCxAaSq0L+NSV5Y+UkAW/BddM/lpqM=' }]
    expect(await restart({ licenseKey: 'OTHER' }).validate()).toMatchObject({ reason: 'NO_FILE' })
    expect(await restart({ publicKeys: stranger }).validate()).toMatchObject({ reason: 'UNKNOWN_KEY' })
    const text = (await storage.read()) ?? ''
    await storage.write(text.replace(service.licenseKey, 'OTHER'))
    expect(await restart({ licenseKey: 'OTHER' }).validate()).toMatchObject({ reason: 'WRONG_LICENSE' })
    await storage.write(text.replace(/.(?=","rejected)/, (last) => (last === 'A' ? 'Q' : 'A')))
    expect(await restart().validate()).toMatchObject({ reason: 'BAD_SIGNATURE' })
    await storage.write('not even JSON')
    expect(await restart().validate()).toMatchObject({ reason: 'NO_FILE' })
  })
})
