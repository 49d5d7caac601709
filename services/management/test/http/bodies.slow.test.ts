/** Tests the bodies of requests: limits by endpoint, the largest imports, and hostile bodies. */

import { createServer, request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

import { importedAccessRules, importedLicenses, problem } from '@keyward/contract'
import { isBehindBalancer } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { UnreadBodies } from '../../src/http/unread-body.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

const KIB = 1024

describe('the limit of a body', () => {
  const sizes: [string, string, number][] = [
    ['of endpoints for apps', 'licenses/file', 16 * KIB],
    ['of most endpoints', 'api-keys', 64 * KIB],
    ['of endpoints with metadata', 'products', 128 * KIB],
  ]
  test.each(sizes)('the body limit %s is enforced by POST %s', async (_, path, limit) => {
    const token = path === 'licenses/file' ? vendor.apiKey : vendor.managementToken
    const send = (bytes: number) => vendor.call('POST', path, { token, raw: `{"a":"${'x'.repeat(bytes - 8)}"}` })
    expect(outcome(await send(limit))).toBe('422 INVALID_REQUEST')
    const rejected = await send(limit + 1)
    expect(outcome(rejected)).toBe('413 PAYLOAD_TOO_LARGE')
    expect(problem.parse(rejected.body).detail).toContain(`${limit / KIB} KiB`)
  })

  test('the body limit applies to the decoded bytes', async () => {
    const raw = gzipSync(Buffer.from(`{"a":"${'x'.repeat(64 * KIB)}"}`))
    const headers = { 'content-encoding': 'gzip' }
    expect(raw.length).toBeLessThan(KIB)
    expect(outcome(await vendor.call('POST', 'api-keys', { raw, headers }))).toBe('413 PAYLOAD_TOO_LARGE')
    const small = gzipSync(Buffer.from('{"name":"zipped"}'))
    expect(outcome(await vendor.call('POST', 'api-keys', { raw: small, headers }))).toBe('201')
    const broken = outcome(await vendor.call('POST', 'api-keys', { raw: small.subarray(0, 20), headers }))
    expect(broken).toBe('400 MALFORMED_JSON')
    const unknown = { 'content-encoding': 'zstd' }
    expect(outcome(await vendor.call('POST', 'api-keys', { raw: small, headers: unknown }))).toBe(
      '415 UNSUPPORTED_MEDIA_TYPE',
    )
  })

  test('accepts the longest metadata, with and without escapes', async () => {
    const text = '名'.repeat(16_384 - '{"a":""}'.length)
    const escaped = `{"name":"a","metadata":{"a":"${text.replaceAll('名', String.raw`\u540d`)}"}}`
    expect(outcome(await vendor.call('POST', 'products', { raw: escaped }))).toBe('201')
    expect(outcome(await vendor.call('POST', 'products', { body: { name: 'a', metadata: { a: text } } }))).toBe('201')
  })
})

/** Sends the headers of a request and only part of its body. */
function sendPart(path: string, token: string | null, part: string, length: number) {
  const { hostname, port } = new URL(harness.origin)
  const headers = { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) }
  const request = httpRequest({
    hostname,
    port,
    method: 'POST',
    path: `/api/v1/${path}`,
    headers: { ...headers, 'content-length': length },
  })
  const status = new Promise<number>((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
  })
  request.write(part)
  return { status, end: (rest: string) => request.end(rest), destroy: () => request.destroy() }
}

// A balancer may wait for more of the body than this test sends.
test.skipIf(isBehindBalancer)('rejects a caller without permission before the body arrives', async () => {
  for (const [token, expected] of [
    [null, 401],
    [vendor.apiKey, 403],
  ] as const) {
    const request = sendPart('licenses/import', token, '{', 1_000_000)
    expect(await request.status).toBe(expected)
    request.destroy()
  }
})

describe('an import', () => {
  test('imports 1,000 licenses with the longest metadata', { timeout: 60_000 }, async () => {
    const parents = { productId: await vendor.product(), customerId: await vendor.customer() }
    const metadata = { a: '名'.repeat(16_384 - '{"a":""}'.length) }
    const license = { ...parents, policy: { type: 'PERPETUAL' }, metadata }
    const body = { licenses: Array.from({ length: 1_000 }, () => license) }
    const { created, licenses } = expectBody(
      await vendor.call('POST', 'licenses/import', { body }),
      200,
      importedLicenses,
    )
    expect(created).toBe(1_000)
    const last = await vendor.call('GET', `licenses/${licenses.at(-1)?.id}`)
    expect(last.body).toMatchObject({ metadata })
  })

  test('imports 1,000 rules of the largest size', { timeout: 60_000 }, async () => {
    const rules = Array.from({ length: 1_000 }, (_, i) => ({
      kind: 'BLACKLIST',
      type: 'HWID',
      value: `${'\u0001'.repeat(508)}${String(i).padStart(4, '0')}`,
      scope: 'ORGANIZATION',
      note: '\u0001'.repeat(500),
    }))
    const response = await vendor.call('POST', 'access-rules/import', { body: { rules } })
    expect(expectBody(response, 200, importedAccessRules).created).toBe(1_000)
  })

  test('an import rejects a row of more than 16 KiB', async () => {
    const raw = `{"rules":[${' '.repeat(20 * KIB)}1]}`
    const response = await vendor.call('POST', 'access-rules/import', { raw })
    expect(problem.parse(response.body)).toMatchObject({
      status: 413,
      detail: '#/rules/0 must not be larger than 16 KiB.',
    })
  })

  test('an import accepts an escape in the name of the member with the rows', async () => {
    const rule = '{"kind":"BLACKLIST","type":"IP","value":"192.0.2.200","scope":"ORGANIZATION"}'
    const raw = String.raw`{"r\u0075les":[${rule}]}`
    expect(
      expectBody(await vendor.call('POST', 'access-rules/import', { raw }), 200, importedAccessRules).created,
    ).toBe(1)
  })

  test('an import rejects a malformed row, and the name __proto__ in a row', async () => {
    const send = (raw: string) => vendor.call('POST', 'access-rules/import', { raw })
    expect(outcome(await send('{"rules":[{"kind":}]}'))).toBe('400 MALFORMED_JSON')
    const rejected = await send(String.raw`{"rules":[{},{"a":[{"__prot\u006f__":1}]}]}`)
    expect(problem.parse(rejected.body).errors?.[0]?.pointer).toBe('#/rules/1/a/0/__proto__')
  })

  // A balancer buffers part of the body, so the order of the requests is unknown.
  test.skipIf(isBehindBalancer)(
    'runs one import of an organization at a time, while eight others wait and further ones get 503',
    async () => {
      const other = await createVendor(harness)
      const body = JSON.stringify({
        rules: [{ kind: 'BLACKLIST', type: 'IP', value: '192.0.2.7', scope: 'ORGANIZATION' }],
      })
      const start = () => sendPart('access-rules/import', vendor.managementToken, body.slice(0, 10), body.length)
      const first = start()
      await new Promise((resolve) => setTimeout(resolve, 300))
      await expect.poll(async () => outcome(await other.call('POST', 'access-rules/import', { raw: body }))).toBe('200')
      const rest = Array.from({ length: 20 }, start)
      for (const request of rest) request.end(body.slice(10))
      // Eight imports wait for the first one. All others are rejected at once.
      let rejected = 0
      for (const request of rest) void request.status.then((status) => (rejected += Number(status === 503)))
      await expect.poll(() => rejected, { timeout: 4_000 }).toBe(12)
      expect(outcome(await other.call('POST', 'access-rules/import', { raw: body }))).toBe('200')
      first.end(body.slice(10))
      expect(await first.status).toBe(200)
      const statuses = await Promise.all(rest.map((request) => request.status))
      expect(statuses.filter((status) => status === 200)).toHaveLength(8)
    },
  )
})

test('runs an import while imports of other organizations arrive slowly', async () => {
  const raw = '{"rules":[{"kind":"BLACKLIST","type":"IP","value":"192.0.2.8","scope":"ORGANIZATION"}]}'
  const slow = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const { managementToken } = await createVendor(harness)
      return sendPart('access-rules/import', managementToken, raw.slice(0, 10), raw.length)
    }),
  )
  await sleep(300)
  // If the slow bodies held the places, this import would get 503.
  expect(outcome(await vendor.call('POST', 'access-rules/import', { raw }))).toBe('200')
  for (const request of slow) request.end(raw.slice(10))
  expect(await Promise.all(slow.map(({ status }) => status))).toEqual(Array(6).fill(200))
})

describe('a hostile body', () => {
  test('accepts a body that is nested to a depth of 100, where brackets in strings do not count', async () => {
    const nested = (depth: number, text = 'x') =>
      `{"name":"a","metadata":${'['.repeat(depth)}"${text}"${']'.repeat(depth)}}`
    const errorOf = async (raw: string) => {
      const response = await vendor.call('POST', 'products', { raw })
      expect(outcome(response)).toBe('422 INVALID_REQUEST')
      return problem.parse(response.body).errors?.[0]
    }
    expect((await errorOf(nested(99)))?.pointer).toBe('#/metadata')
    expect(await errorOf(nested(100))).toEqual({ pointer: '#', detail: 'must not be nested deeper than 100' })
    const brackets = String.raw`\\\"${'[{'.repeat(300)}\\`
    const body = `{"name":"a","metadata":{"a":"${brackets}"}}`
    expect(outcome(await vendor.call('POST', 'products', { raw: body }))).toBe('201')
  })

  test('returns 422 for a body that is nested too deeply, also with an idempotency key', async () => {
    const raw = `{"name":"a","metadata":${'['.repeat(50_000)}${']'.repeat(50_000)}}`
    const headers = { 'idempotency-key': 'deep' }
    expect(outcome(await vendor.call('POST', 'products', { raw, headers }))).toBe('422 INVALID_REQUEST')
  })

  test('returns the number of errors and the first hundred for a body with thousands of errors', async () => {
    const many = Array.from({ length: 8_000 }, (_, i) => `"${i}":0`).join(',')
    const { errors, detail } = problem.parse(
      (await vendor.call('POST', 'products', { raw: `{"name":"a",${many}}` })).body,
    )
    expect(errors).toHaveLength(100)
    expect(detail).toBe('The request has 8000 validation errors; the first 100 are listed.')
  })
})

describe('the stored response of an idempotency key', () => {
  const stored = async (key: string) =>
    (await harness.database.pool.query('select from idempotency_keys where key = $1', [key])).rowCount

  test('stores no response with validation errors, so a corrected request may use the same idempotency key', async () => {
    const headers = { 'idempotency-key': 'rows' }
    const bad = Array.from({ length: 100 }, () => ({ ['名'.repeat(100)]: 1 }))
    const send = (rules: unknown[]) => vendor.call('POST', 'access-rules/import', { body: { rules }, headers })
    expect(outcome(await send(bad))).toBe('422 INVALID_REQUEST')
    expect(await stored('rows')).toBe(0)
    const rule = { kind: 'BLACKLIST', type: 'IP', value: '192.0.2.201', scope: 'ORGANIZATION' }
    expect(outcome(await send([rule]))).toBe('200')
    expect(await stored('rows')).toBe(1)
  })

  test('binds the stored response to the bytes of the body', async () => {
    const headers = { 'idempotency-key': 'bytes' }
    const send = (raw: string) => vendor.call('POST', 'products', { raw, headers })
    expect(outcome(await send('{"name":"a"}'))).toBe('201')
    expect(outcome(await send('{"name":"a"}'))).toBe('201')
    expect(outcome(await send('{"name": "a"}'))).toBe('422 IDEMPOTENCY_KEY_REUSED')
  })
})

describe('a body that is not read', () => {
  const BYTES = 32 * KIB * KIB

  /** Sends a request with a body that the server does not read. Returns the response and the number of bytes that were received. */
  async function sendUnread(bytesPerSecond: number): Promise<{ text: string; read: number }> {
    const bodies = new UnreadBodies(bytesPerSecond)
    let socketOfServer: Socket | undefined
    const server = createServer((request, response) => {
      socketOfServer = request.socket
      response.statusCode = 401
      bodies.end(request, response, 'no credential')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    const address = server.address()
    const client = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1')
    let text = ''
    client.on('data', (data) => (text += String(data)))
    client.on('error', () => undefined)
    const closed = new Promise((resolve) => client.once('close', resolve))
    client.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BYTES}\r\n\r\n`)
    const chunk = Buffer.alloc(KIB * KIB)
    for (let i = 0; i < BYTES / chunk.length; i++) client.write(chunk)
    const hasRead = (): boolean => (socketOfServer?.bytesRead ?? 0) >= BYTES
    const isRead = async (): Promise<void> => {
      while (!client.destroyed && !hasRead()) await sleep(10)
    }
    await Promise.race([closed, isRead()])
    const read = socketOfServer?.bytesRead ?? 0
    client.destroy()
    await closed
    await new Promise((resolve) => server.close(resolve))
    return { text, read }
  }

  test('discards an unread body within the limit, and keeps the connection open', async () => {
    const { text, read } = await sendUnread(BYTES)
    expect(text).toMatch(/^HTTP\/1\.1 401 [^]*connection: keep-alive[^]*no credential/i)
    expect(read).toBeGreaterThan(BYTES)
  })

  test('does not receive an unread body beyond the limit, and closes the connection after the response', async () => {
    const { text, read } = await sendUnread(BYTES - 1)
    expect(text).toMatch(/^HTTP\/1\.1 401 [^]*connection: close[^]*no credential/i)
    expect(read).toBeLessThan(KIB * KIB)
  })
})

test('returns 413 for a large body when the method of the request takes no body', async () => {
  const raw = 'x'.repeat(64 * KIB + 1)
  for (const [method, path] of [
    ['DELETE', `products/${await vendor.product()}`],
    ['DELETE', 'no/such/path'],
  ] as const)
    expect(outcome(await vendor.call(method, path, { raw }))).toBe('413 PAYLOAD_TOO_LARGE')
})
