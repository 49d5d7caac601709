/** Tests the codes with which machines without a network request their files (docs/api.md#f9). */

import { expect, test } from 'vitest'

import { parseRequestCode, requestCodeOf } from '../src/index.ts'

const request = { licenseKey: 'K7QX-93FM-TTRW-H2ZD', machineId: 'machine-zoë 7', hostname: 'plant-3' }
// Written by hand with base64url and SHA-256 of OpenSSL.
const CODE =
  'KWR1.eyJsaWNlbnNlS2V5IjoiSzdRWC05M0ZNLVRUUlctSDJaRCIsIm1hY2hpbmVJZCI6Im1hY2hpbmUtem_DqyA3IiwiaG9zdG5hbWUiOiJwbGFudC0zIn0.nS8OBfck'

test('the code of a request is the documented one, and contains the request', async () => {
  expect(await requestCodeOf(request)).toBe(CODE)
  expect(await parseRequestCode(CODE)).toEqual(request)
  const { hostname: _, ...unnamed } = request
  expect(await parseRequestCode(await requestCodeOf(unnamed))).toEqual(unnamed)
})

test('a code that was wrapped or indented on its way is still read', async () => {
  expect(await parseRequestCode(`\n  ${CODE.slice(0, 40)}\r\n> `.replace('>', '') + `${CODE.slice(40)} \n`)).toEqual(
    request,
  )
})

test('a code with any changed, missing or added character is rejected', async () => {
  for (let at = 0; at < CODE.length; at++) {
    const other = CODE[at] === 'A' ? 'B' : 'A'
    expect(await parseRequestCode(CODE.slice(0, at) + other + CODE.slice(at + 1))).toBeNull()
    expect(await parseRequestCode(CODE.slice(0, at) + CODE.slice(at + 1))).toBeNull()
  }
  for (const text of ['', 'KWR1', 'KWR1..', `${CODE}A`, `${CODE}.`, `x${CODE}`, 'x'.repeat(100_000)])
    expect(await parseRequestCode(text)).toBeNull()
})

test('a code without a license key or a machine id is rejected', async () => {
  expect(await parseRequestCode(await requestCodeOf({ licenseKey: '', machineId: 'm' }))).toBeNull()
  expect(await parseRequestCode(await requestCodeOf({ licenseKey: 'k', machineId: '' }))).toBeNull()
})
