import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { possibleLicenseKeys } from '../src/license-key.ts'
import { startWorld } from './setup.ts'

const KEY = 'K7QX-93FM-TTRW-H2ZD'
const VALIDATE = '/api/v2/license/validate'

describe('a text in the form of a generated key', () => {
  test.each([
    ['in lower case', 'k7qx-93fm-ttrw-h2zd'],
    ['without hyphens', 'k7qx93fmttrwh2zd'],
    ['without hyphens in upper case', 'K7QX93FMTTRWH2ZD'],
    ['with blanks for hyphens', 'K7QX 93FM TTRW H2ZD'],
    ['with blanks beside the hyphens', 'K7QX - 93FM -TTRW- H2ZD'],
    ['with hyphens elsewhere', 'k7-qx93fm-ttrwh2zd-'],
  ])('a text in the form of a generated key may mean itself or the generated key: %s', (_name, text) => {
    expect(possibleLicenseKeys(`  ${text}\r\n`)).toEqual([text, KEY])
  })
})

test('a generated key that is typed with typographic dashes means only the generated key', () => {
  expect(possibleLicenseKeys('K7QX\u201393FM\u2011TTRW\u2014H2ZD')).toEqual([KEY])
})

describe('any other text', () => {
  test.each([
    KEY,
    'acme-1234',
    'vendor key',
    'k7qx-93fm-ttrw',
    'k7qx-93fm-ttrw-h2zd-aaaa',
    'k0qx-93fm-ttrw-h2zd',
    'i7qx-93fm-ttrw-h2zd',
    '\u017F7qx-93fm-ttrw-h2zd',
    '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
  ])('any other text means only itself without surrounding blanks: %j', (text) => {
    expect(possibleLicenseKeys(` ${text}\n`)).toEqual([text])
  })
})

test.each(['k7qx 93fm ttrw h2zd', 'k7qx93fmttrwh2zd'])(
  'sends only the generated key after the first check of %s',
  async (licenseKey) => {
    const { gateway, restart } = await startWorld()
    const client = restart({ licenseKey })
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    await client.settled()
    expect(gateway.requests.filter((path) => path === VALIDATE)).toHaveLength(2)
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(gateway.requests.filter((path) => path === VALIDATE)).toHaveLength(3)
    await gateway.stop()
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    expect(await restart({ licenseKey }).validate()).toMatchObject({ source: 'offline', valid: true })
    expect(await restart({ licenseKey: KEY }).validate()).toMatchObject({ source: 'offline', valid: true })
  },
)

test("sends a vendor's own key in the form of a generated key unchanged", async () => {
  const { service, gateway, restart } = await startWorld()
  service.licenseKey = 'k7qx-93fm-ttrw-h2zd'
  const client = restart({ licenseKey: ' k7qx-93fm-ttrw-h2zd ' })
  expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  await client.settled()
  expect(gateway.requests.filter((path) => path === VALIDATE)).toHaveLength(1)
  await gateway.stop()
  expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
})

test('tries the generated key with a second request before it returns NOT_FOUND', async () => {
  const { service, gateway, restart } = await startWorld()
  service.licenseKey = 'another'
  expect(await restart({ licenseKey: 'k7qx93fmttrwh2zd' }).validate()).toMatchObject({ code: 'NOT_FOUND' })
  expect(gateway.requests).toEqual([VALIDATE, VALIDATE])
  expect(await restart({ licenseKey: 'unknown' }).validate()).toMatchObject({ code: 'NOT_FOUND' })
  expect(gateway.requests).toHaveLength(3)
})

test('ends the use of the file for both keys when the generated key is rejected', async () => {
  const { service, gateway, restart } = await startWorld()
  const licenseKey = 'k7qx93fmttrwh2zd'
  const client = restart({ licenseKey })
  await client.validate()
  await client.settled()
  service.license.rejectedAs = 'REVOKED'
  expect(await restart({ licenseKey }).validate()).toMatchObject({ source: 'online', code: 'REVOKED' })
  await gateway.stop()
  const refused = { source: 'offline', reason: 'NO_FILE', rejectedAs: 'REVOKED' }
  expect(await restart({ licenseKey }).validate()).toMatchObject(refused)
  expect(await restart({ licenseKey: KEY }).validate()).toMatchObject(refused)
})

test('uses the file of the generated key during an outage between the two requests', async () => {
  const { gateway, restart } = await startWorld()
  const licenseKey = 'k7qx93fmttrwh2zd'
  const client = restart({ licenseKey })
  await client.validate()
  await client.settled()
  gateway.next = [{ kind: 'none' }, { kind: 'drop' }, { kind: 'drop' }, { kind: 'drop' }]
  expect(await restart({ licenseKey }).validate()).toMatchObject({ source: 'offline', valid: true })
})

test('activate, refreshFile, deactivate and importFile apply to the generated key', async () => {
  const { service, gateway, restart, storage } = await startWorld()
  const licenseKey = 'k7qx93fmttrwh2zd'
  const client = restart({ licenseKey })
  expect(await client.activate()).toMatchObject({ valid: true })
  await client.settled()
  const { file } = z
    .object({ licenses: z.tuple([z.object({ file: z.string() })]) })
    .parse(JSON.parse((await storage.read()) ?? '')).licenses[0]
  expect(await restart({ licenseKey }).refreshFile()).toMatchObject({ refreshed: true })
  expect(await restart({ licenseKey }).deactivate()).toMatchObject({ deactivated: true })
  expect(service.machines.size).toBe(0)
  expect(await restart({ licenseKey }).importFile(file)).toMatchObject({ imported: true })
  await gateway.stop()
  expect(await restart({ licenseKey }).validate()).toMatchObject({ source: 'offline', valid: true })
})
