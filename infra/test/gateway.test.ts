import { once } from 'node:events'
import { createServer as createHttpServer, IncomingMessage, request } from 'node:http'
import { connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { listenOn } from '../shared/ports.ts'
import { startGateway, VALIDATION_PATHS, type Gateway } from '../start/gateway.ts'
import { SIGNATURE, Upstream } from './upstream.ts'

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

describe('routing', () => {
  test.each([...VALIDATION_PATHS, '/api/v1/public-key?x=1'])('forwards %s to the validator', async (path) => {
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
  ])('forwards %s to management', async (path) => {
    expect(await (await fetch(base + path)).json()).toEqual({ from: 'management' })
  })
})

test('forwards method, path, query, body, status and headers unchanged', async () => {
  const body = Buffer.from([0xff, 0x00, 0x7b, 0x22])
  const path = '/api/v2/license/validate?a=%2F&b'
  const response = await fetch(base + path, { method: 'POST', body, headers: { authorization: 'Bearer kwk_x' } })
  expect([response.status, response.headers.get('x-of-service')]).toEqual([400, 'validator'])
  expect(response.headers.get('location')).toBe('/elsewhere')
  expect(response.headers.get('keyward-signature')).toBe(SIGNATURE)
  expect(validator.seen[0]).toMatchObject({ method: 'POST', url: path, headers: { authorization: 'Bearer kwk_x' } })
  expect(validator.seen[0]?.body).toEqual(body)
})

test('names itself in the header via, with which `npm run bench` warns about this target', async () => {
  for (const path of ['/api/v1/validate', '/docs'])
    expect((await fetch(base + path)).headers.get('via')).toBe('1.1 keyward-development-gateway')
})

test("overwrites x-forwarded-for with the caller's address", async () => {
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

/** Sends a body in pieces of 1,000 bytes and returns the response. Reads no response before the whole body is sent. */
async function post(size: number, headers: Record<string, string | number>): Promise<IncomingMessage> {
  const sent = request(`${base}/api/v1/validate`, { method: 'POST', headers })
  const responded = once(sent, 'response')
  for (let at = 0; at < size; at += 1_000) sent.write(Buffer.alloc(Math.min(1_000, size - at), 'x'))
  sent.end()
  const [response] = z.tuple([z.instanceof(IncomingMessage)]).parse(await responded)
  return response
}

test.each([0, 1, 10_000, 16_384])(
  'forwards a chunked body of %i bytes to the validator with a content-length',
  async (size) => {
    await text(await post(size, { 'transfer-encoding': 'chunked' }))
    const { headers, body } = validator.seen.at(-1) ?? {}
    expect(headers?.['transfer-encoding']).toBeUndefined()
    expect(headers?.['content-length']).toBe(String(size))
    expect(body).toEqual(Buffer.alloc(size, 'x'))
  },
)

test.each([16_385, 1_100_000])('returns 413 for a body of %i bytes to the validator', async (size) => {
  for (const headers of [{ 'content-length': size }, { 'transfer-encoding': 'chunked' }]) {
    const response = await post(size, headers)
    expect(response.statusCode).toBe(413)
    expect(JSON.parse(await text(response))).toMatchObject({ status: 413, code: 'PAYLOAD_TOO_LARGE' })
  }
  expect(validator.seen).toEqual([])
  expect((await post(1, { 'content-length': 1 })).statusCode).toBe(400)
})

test.each([
  ['another transfer-encoding', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 400],
  ['chunked in capitals', 'Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n', 400],
  ['both framings', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n', 400],
  ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab', 400],
  ['a header without a colon', 'nonsense\r\n\r\n', 400],
  ['headers of 100 kB', `X-A: ${'a'.repeat(100_000)}\r\n\r\n`, 431],
])('responds to %s with an error in JSON and closes the connection', async (_name, rest, status) => {
  const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined)
  socket.write(`POST /api/v1/validate HTTP/1.1\r\nHost: x\r\n${rest}`)
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*connection: close`, 'i'))
  expect(JSON.parse(/\{.*\}/.exec(body)?.[0] ?? '')).toMatchObject({ status, code: 'BAD_REQUEST' })
  expect(validator.seen).toEqual([])
})

test('forwards a HEAD request and its response without a body', async () => {
  const response = await fetch(`${base}/api/v1/public-key`, { method: 'HEAD' })
  expect([response.status, await response.text()]).toEqual([400, ''])
})

test('forwards a response that arrives before the end of the request body', async () => {
  const upload = request(`${base}/early`, { method: 'POST', headers: { 'content-length': 64 * 1024 } })
  upload.write(Buffer.alloc(1024))
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    upload.on('response', resolve).on('error', reject)
  })
  expect([response.statusCode, await text(response)]).toEqual([413, 'too large'])
  upload.destroy()
})

test('returns 503 without a verdict for the paths of a service that is down', async () => {
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

test('forwards a request whose target is an absolute URL', async () => {
  const socket = connect(gateway.port, '127.0.0.1').on('error', () => undefined)
  const head = 'Host: x\r\nConnection: close\r\n\r\n'
  socket.write(`GET http://licenses.example.com/api/v1/public-key?x=1 HTTP/1.1\r\n${head}`)
  expect(await text(socket)).toContain('{"from":"validator"}')
  expect(validator.seen[0]?.url).toBe('/api/v1/public-key?x=1')
})

describe('a service that closes connections', () => {
  /** Responds to the first request of each connection, and closes the connection when the second arrives. */
  async function startClosing(): Promise<{ url: string; requests: () => number; close: () => void }> {
    let requests = 0
    const server = createServer((socket) => {
      let hasResponded = false
      socket.on('error', () => undefined)
      socket.on('data', () => {
        requests++
        if (hasResponded) return socket.destroy()
        hasResponded = true
        return socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}')
      })
    })
    const url = `http://127.0.0.1:${await listenOn(server, 0)}`
    return { url, requests: () => requests, close: () => server.close() }
  }

  const CHECK = { method: 'POST', body: '{"license":"x"}' }

  test.each([
    ['a check', '/api/v2/license/validate', CHECK, 200],
    [
      'a chunked check',
      '/api/v1/validate',
      { ...CHECK, body: new Blob(['{}']).stream(), duplex: 'half' as const },
      200,
    ],
    ['a GET to management', '/api/v1/licenses', {}, 200],
    ['a POST to management', '/api/v1/licenses', CHECK, 503],
  ])('repeats %s only if the repetition is safe', async (_name, path, sent, status) => {
    const service = await startClosing()
    const own = await startGateway(0, { validator: () => service.url, management: () => service.url })
    expect((await fetch(`http://127.0.0.1:${own.port}/api/v1/public-key`)).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${own.port}${path}`, sent)).status).toBe(status)
    expect(service.requests()).toBe(status === 200 ? 3 : 2)
    await own.close()
    service.close()
  })

  test('repeats a request at most once', async () => {
    let connections = 0
    const server = createServer((socket) => {
      const isFirst = ++connections === 1
      socket.on('error', () => undefined)
      socket.once('data', () => {
        if (!isFirst) return socket.destroy()
        socket.once('data', () => socket.destroy())
        return socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}')
      })
    })
    const url = `http://127.0.0.1:${await listenOn(server, 0)}`
    const own = await startGateway(0, { validator: () => url, management: () => url })
    const check = (): Promise<Response> => fetch(`http://127.0.0.1:${own.port}/api/v1/validate`, CHECK)
    expect([(await check()).status, (await check()).status]).toEqual([200, 503])
    expect(connections).toBe(2)
    await own.close()
    server.close()
  })
})

test('replaces an HTML error of the HTTP library of a validator with JSON, and keeps the connection open', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end('HTTP/1.1 431 Too Large\r\nConnection: close\r\n\r\n<h1>Too Large</h1>'))
  })
  const url = `http://127.0.0.1:${await listenOn(server, 0)}`
  const own = await startGateway(0, { validator: () => url, management: () => url })
  const response = await fetch(`http://127.0.0.1:${own.port}/api/v1/validate`, { method: 'POST', body: '{}' })
  expect(await response.json()).toMatchObject({ status: 431, code: 'BAD_REQUEST' })
  expect(response.headers.get('connection')).toBe('keep-alive')
  await own.close()
  server.close()
})

test('finishes requests in progress when it stops', async () => {
  let started = 0
  const service = createHttpServer((_request, response) => {
    started++
    setTimeout(() => response.end('{}'), 20)
  })
  const url = `http://127.0.0.1:${await listenOn(service, 0)}`
  const stopped = await startGateway(0, { validator: () => url, management: () => url })
  const statuses: number[] = []
  const client = async (): Promise<void> => {
    for (;;) {
      // A request on a connection that the gateway is closing fails, as does a new connection. Neither reaches the service.
      const response = await fetch(`http://127.0.0.1:${stopped.port}/api/v1/validate`).catch(() => null)
      if (response === null) return
      await response.text()
      statuses.push(response.status)
    }
  }
  const clients = Array.from({ length: 6 }, client)
  await vi.waitUntil(() => statuses.length >= 50, { timeout: 20_000 })
  await stopped.close()
  await Promise.all(clients)
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(statuses.length).toBe(started)
  service.close()
})
