/**
 * Tests requests that fail in a page, where browsers hide the reason. A global `location` and a failing `fetch` simulate the page.
 * `browser.slow.test.ts` tests the same case in a real browser.
 */

import { afterEach, describe, expect, test, vi } from 'vitest'

import { startWorldWithFile } from './setup.ts'

const BASE_URL = 'https://licenses.example.com'

afterEach(() => vi.unstubAllGlobals())

/** Creates a client in a page of `origin`. Its requests fail without a reason. */
async function startPage(origin: string) {
  vi.stubGlobal('location', { origin })
  const { restart } = await startWorldWithFile()
  const fetch = () => Promise.reject(new TypeError('Failed to fetch'))
  return restart({ baseUrl: BASE_URL, fetch, timeoutMs: 100 })
}

describe('in a page of another origin', () => {
  test('names CORS_ORIGINS and the origin of the page as a possible cause in a page of another origin', async () => {
    const client = await startPage('https://app.example.com')
    const detail: unknown = expect.stringMatching(/CORS_ORIGINS may not contain https:\/\/app\.example\.com/)
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true, cause: 'NETWORK_ERROR', detail })
    expect(await client.deactivate()).toMatchObject({ code: 'UNREACHABLE', cause: 'NETWORK_ERROR', detail })
    expect(await client.refreshFile()).toMatchObject({ code: 'UNREACHABLE', cause: 'NETWORK_ERROR', detail })
  })
})

test('omits CORS_ORIGINS in a page of the same origin', async () => {
  const client = await startPage(BASE_URL)
  expect(await client.validate()).toMatchObject({ detail: `No connection to ${BASE_URL}: Failed to fetch.` })
})

test('describes a failure without a reason in Node, such as a response with status 407', async () => {
  const { gateway, client } = await startWorldWithFile()
  gateway.fault = { kind: 'respond', status: 407 }
  const detail: unknown = expect.stringMatching(
    /: the request failed without a reason; a proxy may require authentication\.$/,
  )
  expect(await client.validate()).toMatchObject({ source: 'offline', valid: true, detail })
})

test('returns the reason of the failure in Node', async () => {
  const { gateway, client } = await startWorldWithFile()
  await gateway.stop()
  expect(await client.validate()).toMatchObject({ detail: `No connection to ${gateway.url}: ECONNREFUSED.` })
})
