import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import { startGateway, VALIDATION_PATHS, type Gateway } from '../start/gateway.ts'
import { Upstream } from './upstream.ts'

let validator: Upstream
let management: Upstream
let gateway: Gateway
let base: string

const targets = { validator: () => validator.url, management: () => management.url }

beforeAll(async () => {
  gateway = await startGateway(0, targets)
  base = `http://127.0.0.1:${gateway.port}`
})

afterAll(() => gateway.close())

beforeEach(async () => {
  validator = await new Upstream('validator').listen()
  management = await new Upstream('management').listen()
})

afterEach(() => {
  validator.close()
  management.close()
})

describe('routes by path', () => {
  test.each([...VALIDATION_PATHS, '/api/v1/public-key?x=1'])('%s to the validator', async (path) => {
    expect(await (await fetch(base + path)).json()).toEqual({ from: 'validator' })
  })

  test.each([
    '/',
    '/docs',
    '/openapi.json',
    '/api/v1/licenses',
    '/api/v1/validate/',
    '/api/v1/validators',
    '/api/v1/licenses/file',
  ])('%s to management', async (path) => {
    expect(await (await fetch(base + path)).json()).toEqual({ from: 'management' })
  })
})

test('forwards method, path, query, body, status and headers unchanged', async () => {
  const body = Buffer.from([0xff, 0x00, 0x7b, 0x22])
  const path = '/api/v2/license/validate?a=%2F&b'
  const response = await fetch(base + path, { method: 'POST', body, headers: { authorization: 'Bearer kwk_x' } })
  expect([response.status, response.headers.get('x-of-service')]).toEqual([400, 'validator'])
  expect(response.headers.get('location')).toBe('/elsewhere')
  expect(validator.seen[0]).toMatchObject({ method: 'POST', url: path, headers: { authorization: 'Bearer kwk_x' } })
  expect(validator.seen[0]?.body).toEqual(body)
})

test("sets x-forwarded-for to the caller's address, whatever the caller sent", async () => {
  await fetch(`${base}/api/v1/validate`, { headers: { 'x-forwarded-for': '203.0.113.7, 10.0.0.1' } })
  expect(validator.seen[0]?.headers['x-forwarded-for']).toBe('127.0.0.1')
  const repeated = request(`${base}/api/v1/validate`, { headers: { 'X-Forwarded-For': ['1.1.1.1', '2.2.2.2'] } }).end()
  await once(repeated, 'response')
  expect(validator.seen[1]?.headers['x-forwarded-for']).toBe('127.0.0.1')
})

test('reuses connections to the services', async () => {
  for (let i = 0; i < 10; i++) await (await fetch(`${base}/api/v1/validate`)).text()
  expect(validator.connections.size).toBe(1)
})

test('sends a chunked body to the validator with a content-length', async () => {
  for (const size of [0, 1, 10_000, 100_000]) {
    const chunked = request(`${base}/api/v1/validate`, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } })
    const responded = once(chunked, 'response')
    for (let sent = 0; sent < size; sent += 1_000) chunked.write(Buffer.alloc(Math.min(1_000, size - sent), 'x'))
    chunked.end()
    await responded
    chunked.destroy()
    const { headers, body } = validator.seen.at(-1) ?? {}
    expect(headers?.['transfer-encoding']).toBeUndefined()
    expect(headers?.['content-length']).toBe(String(body?.length))
    const limit = 16 * 1024
    expect(body?.subarray(0, limit)).toEqual(Buffer.alloc(Math.min(size, limit), 'x'))
    expect((body?.length ?? 0) > limit).toBe(size > limit)
  }
})

test('forwards HEAD', async () => {
  const response = await fetch(`${base}/api/v1/public-key`, { method: 'HEAD' })
  expect([response.status, await response.text()]).toEqual([400, ''])
})

test('forwards a response that comes before the end of the body', async () => {
  const upload = request(`${base}/early`, { method: 'POST', headers: { 'content-length': 64 * 1024 } })
  upload.write(Buffer.alloc(1024))
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    upload.on('response', resolve).on('error', reject)
  })
  expect([response.statusCode, await text(response)]).toEqual([413, 'too large'])
  upload.destroy()
})

test('returns 503, which is no verdict, for the paths of a service that is down', async () => {
  validator.close()
  const response = await fetch(`${base}/api/v2/license/validate`, { method: 'POST', body: '{}' })
  expect(response.status).toBe(503)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('retry-after')).toBe('1')
  const problem = await response.text()
  expect(JSON.parse(problem)).toMatchObject({ status: 503, code: 'UNAVAILABLE' })
  expect(problem).not.toContain('valid"')
  expect((await fetch(`${base}/docs`)).status).toBe(400)
})

test('finishes requests in progress when it stops', async () => {
  const stopped = await startGateway(0, targets)
  const failures: unknown[] = []
  let responses = 0
  const client = async (): Promise<void> => {
    for (;;) {
      try {
        const response = await fetch(`http://127.0.0.1:${stopped.port}/api/v1/validate`)
        await response.text()
        if (response.status >= 500) failures.push(response.status)
        responses++
      } catch (error) {
        const cause = error instanceof Error ? error.cause : undefined
        const during = cause instanceof Error && 'syscall' in cause ? cause.syscall : undefined
        // Only a new connection may be refused.
        if (during !== 'connect') failures.push(error)
        return
      }
    }
  }
  const clients = Array.from({ length: 6 }, client)
  await vi.waitUntil(() => responses >= 50)
  await stopped.close()
  await Promise.all(clients)
  expect(failures).toEqual([])
})
