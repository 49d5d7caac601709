/** License keys as people type them. */

import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { possibleLicenseKeys } from '../src/license-key.ts'
import { startWorld } from './setup.ts'

const KEY = 'K7QX-93FM-TTRW-H2ZD'
const VALIDATE = '/api/v2/license/validate'

describe('a text that spells a generated key stands for itself and for that key', () => {
  test.each([
    ['in lower case', 'k7qx-93fm-ttrw-h2zd'],
    ['without hyphens', 'k7qx93fmttrwh2zd'],
    ['without hyphens in upper case', 'K7QX93FMTTRWH2ZD'],
    ['with blanks for hyphens', 'K7QX 93FM TTRW H2ZD'],
    ['with blanks beside the hyphens', 'K7QX - 93FM -TTRW- H2ZD'],
    ['with hyphens elsewhere', 'k7-qx93fm-ttrwh2zd-'],
  ])('%s', (_name, text) => {
    expect(possibleLicenseKeys(`  ${text}\r\n`)).toEqual([text, KEY])
  })
})

test('a text that no license can have as its key stands for the generated key alone', () => {
  expect(possibleLicenseKeys('K7QX\u201393FM\u2011TTRW\u2014H2ZD')).toEqual([KEY])
})

describe('every other text stands for itself without the blanks around it', () => {
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
  ])('%j', (text) => {
    expect(possibleLicenseKeys(` ${text}\n`)).toEqual([text])
  })
})

test.each(['k7qx 93fm ttrw h2zd', 'k7qx93fmttrwh2zd'])('finds the generated key of %s once', async (licenseKey) => {
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
})

test("sends a vendor's own key in the generated shape as it is typed", async () => {
  const { service, gateway, restart } = await startWorld()
  service.licenseKey = 'k7qx-93fm-ttrw-h2zd'
  const client = restart({ licenseKey: ' k7qx-93fm-ttrw-h2zd ' })
  expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  await client.settled()
  expect(gateway.requests.filter((path) => path === VALIDATE)).toHaveLength(1)
  await gateway.stop()
  expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
})

test('asks for the generated key with one more request, and reports an unknown key', async () => {
  const { service, gateway, restart } = await startWorld()
  service.licenseKey = 'another'
  expect(await restart({ licenseKey: 'k7qx93fmttrwh2zd' }).validate()).toMatchObject({ code: 'NOT_FOUND' })
  expect(gateway.requests).toEqual([VALIDATE, VALIDATE])
  expect(await restart({ licenseKey: 'unknown' }).validate()).toMatchObject({ code: 'NOT_FOUND' })
  expect(gateway.requests).toHaveLength(3)
})

test('a rejection of the generated key ends the use of its file, also for the text that was typed', async () => {
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

test('an outage between both requests uses the file of the generated key', async () => {
  const { gateway, restart } = await startWorld()
  const licenseKey = 'k7qx93fmttrwh2zd'
  const client = restart({ licenseKey })
  await client.validate()
  await client.settled()
  gateway.next = [{ kind: 'none' }, { kind: 'drop' }, { kind: 'drop' }, { kind: 'drop' }]
  expect(await restart({ licenseKey }).validate()).toMatchObject({ source: 'offline', valid: true })
})

test('deactivates, refreshes and imports for the generated key', async () => {
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
