/** License keys as people type them. */

import { describe, expect, test } from 'vitest'

import { normalizeLicenseKey } from '../src/license-key.ts'
import { startWorld } from './setup.ts'

const KEY = 'K7QX-93FM-TTRW-H2ZD'

describe('corrects a generated key', () => {
  test.each([
    ['as it is', KEY],
    ['in lower case', 'k7qx-93fm-ttrw-h2zd'],
    ['with blanks around it', `  ${KEY}\r\n`],
    ['with blanks for hyphens', 'K7QX 93FM TTRW H2ZD'],
    ['with blanks beside the hyphens', 'K7QX - 93FM -TTRW- H2ZD'],
    ['with dashes for hyphens', 'K7QX\u201393FM\u2011TTRW\u2014H2ZD'],
    ['with no-break spaces', '\u00A0K7QX-93FM-TTRW-H2ZD\u00A0'],
  ])('%s', (_name, text) => {
    expect(normalizeLicenseKey(text)).toBe(KEY)
  })
})

describe('leaves every other key as it is', () => {
  test.each([
    'acme-1234',
    ' vendor key ',
    'k7qx93fmttrwh2zd',
    'k7qx-93fm-ttrw',
    'k7qx-93fm-ttrw-h2zd-aaaa',
    'k0qx-93fm-ttrw-h2zd',
    'i7qx-93fm-ttrw-h2zd',
    '\u017F7qx-93fm-ttrw-h2zd',
    '-k7qx-93fm-ttrw-h2zd',
    '0195a3c0-7b1e-7c44-9f3a-2f6d5b8e1a01',
  ])('%j', (text) => {
    expect(normalizeLicenseKey(text)).toBe(text)
  })
})

test('checks, fetches a file and runs offline with a key in lower case and with blanks', async () => {
  const { gateway, restart } = await startWorld()
  const client = restart({ licenseKey: ' k7qx 93fm ttrw h2zd\n' })
  expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
  await client.settled()
  await gateway.stop()
  expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
  expect(await restart({ licenseKey: KEY }).validate()).toMatchObject({ source: 'offline', valid: true })
})

test('sends a key of another shape as it is', async () => {
  const { service, restart } = await startWorld()
  service.licenseKey = ' My Key '
  expect(await restart({ licenseKey: ' My Key ' }).validate()).toMatchObject({ valid: true })
  expect(await restart({ licenseKey: 'My Key' }).validate()).toMatchObject({ code: 'NOT_FOUND' })
})
