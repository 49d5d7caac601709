import { connect } from 'node:net'

import { isBehindBalancer, random } from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { responses, createWorld, raw, send, startLoaded, type World, someText } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let validator: RunningValidator
let license: string

beforeAll(async () => {
  world = await createWorld()
  license = (await world.license({ maxMachines: null })).key
  validator = await startLoaded(world.database.url)
})
beforeEach(({ skip }) => skip(isBehindBalancer, 'a balancer rejects such requests itself'))
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const responsesIn = (text: string): number => text.split('HTTP/1.1 ').length - 1
const body = (): string => JSON.stringify({ license })

function message(headers: string, content = body(), path = V2): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\n${headers}\r\n\r\n${content}`
}
const good = (): string => message(`Content-Length: ${body().length}`)

test('returns 404 for unknown paths and 405 with Allow for other methods', async () => {
  const { port } = validator
  for (const path of [
    '/',
    '/api',
    '/api/v1',
    '/api/v1/validate/',
    '/api/v3/validate',
    '/API/v1/validate',
    '/api/v1/%76alidate',
  ]) {
    const reply = await send(port, path, { method: 'GET' })
    expect([reply.status, reply.body], path).toEqual([404, { code: 'NOT_FOUND', detail: someText }])
  }
  expect((await send(port, '/api/v2/other', {})).body).toEqual({
    status: 404,
    message: someText,
    code: 'NOT_FOUND',
  })
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
    const reply = await send(port, V2, { method })
    expect([reply.status, reply.headers['allow']], method).toEqual([405, 'POST'])
    const error = { status: 405, message: someText, code: 'METHOD_NOT_ALLOWED' }
    expect(reply.body).toEqual(method === 'HEAD' ? undefined : error)
    expect(reply.headers['content-type']).toBe('application/json')
  }
  for (const method of ['POST', 'PUT', 'OPTIONS']) {
    const reply = await send(port, '/api/v1/public-key', { method })
    expect([reply.status, reply.headers['allow'], reply.body]).toEqual([
      405,
      'GET, HEAD',
      { code: 'METHOD_NOT_ALLOWED', detail: someText },
    ])
  }
  expect((await send(port, `${V2}?x=1`, { body: { license }, secret: world.secret })).status).toBe(200)
})

test('responds to pipelined requests in order', async () => {
  const packet = good() + message('Content-Length: 2', '{}') + good()
  const { text } = await raw(validator.port, packet, { enough: responses(3) })
  expect(responsesIn(text)).toBe(3)
  expect(text.split('HTTP/1.1 ').map((part) => part.slice(0, 3))).toEqual(['', '200', '422', '200'])
})

test.each([
  ['two lengths', 'Content-Length: 0\r\nContent-Length: 60'],
  ['two equal lengths', 'Content-Length: 60\r\nContent-Length: 60'],
  ['an empty length', 'Content-Length:'],
  ['a signed length', 'Content-Length: +60'],
  ['a negative length', 'Content-Length: -1'],
  ['a hex length', 'Content-Length: 0x3c'],
  ['a list of lengths', 'Content-Length: 60, 60'],
  ['a spaced length', 'Content-Length: 6 0'],
  ['a length of letters', 'Content-Length: many'],
  ['a length of a hundred digits', `Content-Length: ${'9'.repeat(100)}`],
  ['chunked', 'Transfer-Encoding: chunked'],
  ['chunked and a length', 'Transfer-Encoding: chunked\r\nContent-Length: 4'],
  ['a length and chunked', 'Content-Length: 4\r\nTransfer-Encoding: chunked'],
  ['xchunked', 'Transfer-Encoding: xchunked'],
  ['a chunked encoding in capitals', 'TRANSFER-ENCODING: CHUNKED'],
  ['identity', 'Transfer-Encoding: identity'],
  ['chunked, identity', 'Transfer-Encoding: chunked, identity'],
  ['a folded transfer-encoding', 'X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 0'],
  ['a space before the colon', 'Content-Length : 0'],
  ['a tab in the name', 'Content-Length\t: 0'],
  ['a NUL in a value', 'X-A: a\0b\r\nContent-Length: 0'],
])('executes no second request after %s', async (_name, headers) => {
  const smuggled = `0\r\n\r\n${message(`Content-Length: ${body().length}`)}`
  const { text } = await raw(validator.port, message(headers, smuggled), { limitMs: 200 })
  expect(responsesIn(text)).toBeLessThanOrEqual(1)
  expect(text).not.toContain('"valid"')
})

test('rejects bodies over the limit, with and without a length', async () => {
  const { port } = validator
  const big = await raw(port, message('Content-Length: 16385', ''))
  expect(big.text.slice(0, 12)).toBe('HTTP/1.1 413')
  expect(big.closed).toBe(true)
  const none = await raw(port, message('X-None: 1', ''), { enough: responses(1) })
  expect(none.text.slice(0, 12)).toBe('HTTP/1.1 422')
  const much = await raw(port, message('Content-Length: 100000', 'x'.repeat(100_000)), { limitMs: 500 })
  expect(responsesIn(much.text)).toBeLessThanOrEqual(1)
})

test('rejects requests with too many or too large headers', async () => {
  const { port } = validator
  const headers = Array.from({ length: 200 }, (_, i) => `X-${i}: y`).join('\r\n')
  expect((await raw(port, message(`${headers}\r\nContent-Length: 2`))).text.slice(0, 12)).not.toBe('HTTP/1.1 200')
  const { text } = await raw(port, message(`X-Big: ${'y'.repeat(8_192)}\r\nContent-Length: 2`))
  expect(text).not.toContain('"valid"')
})

test('returns 408 to a slow client after 2 seconds', async () => {
  const { text, closed } = await raw(validator.port, message('Content-Length: 60', '{"license"'))
  expect(text.slice(0, 12)).toBe('HTTP/1.1 408')
  expect(closed).toBe(true)
})

test('serves other clients while a thousand clients are slow', async () => {
  const half = good().slice(0, -10)
  const sockets = Array.from({ length: 1_000 }, () => {
    const socket = connect(validator.port, '127.0.0.1', () => socket.write(half))
    return socket.on('error', () => undefined)
  })
  const ends = sockets.map((socket) => new Promise((resolve) => socket.on('close', resolve).resume()))
  for (let i = 0; i < 20; i++)
    expect((await send(validator.port, V2, { body: { license }, secret: world.secret })).status).toBe(200)
  await Promise.all(ends)
})

test('survives clients that disconnect after any byte', async () => {
  const whole = Buffer.from(good())
  for (let at = 1; at <= whole.length; at += 3)
    await new Promise<void>((resolve) => {
      const socket = connect(validator.port, '127.0.0.1', () => {
        socket.write(whole.subarray(0, at), () => {
          socket.resetAndDestroy()
          resolve()
        })
      })
      socket.on('error', () => resolve())
    })
  expect((await raw(validator.port, good(), { enough: responses(1) })).text).toContain('"code":"VALID"')
})

test('accepts a request in small pieces', async () => {
  const whole = good()
  // The parser accepts the request line only in one piece, and responds 505 otherwise.
  const lineEnd = whole.indexOf('\r\n') + 2
  const reply = await new Promise<string>((resolve, reject) => {
    const socket = connect(validator.port, '127.0.0.1')
    socket.setNoDelay(true)
    socket.on('error', reject)
    socket.on('data', (data) => {
      socket.destroy()
      resolve(data.toString())
    })
    let at = lineEnd
    socket.write(whole.slice(0, at))
    const step = (): void => {
      if (at >= whole.length) return
      socket.write(whole.slice(at, at + 7))
      at += 7
      setTimeout(step, 1)
    }
    step()
  })
  expect(reply).toContain('"code":"VALID"')
})

test('sends at most one response to each of many mutated requests, and still serves other clients', async () => {
  const rounds = process.env['KEYWARD_LONG'] ? 100_000 : 400
  const from = random(77)
  const base = Buffer.from(message(`Content-Length: ${body().length}`))
  const mutate = (): Buffer => {
    const bytes = [...base]
    for (let edits = 1 + from.int(4); edits > 0; edits--) {
      const at = from.int(bytes.length)
      if (from.chance(0.3)) bytes.splice(at, 1 + from.int(5))
      else if (from.chance(0.5)) bytes.splice(at, 0, ...from.bytes(1 + from.int(3)))
      else bytes[at] = from.int(256)
    }
    return Buffer.from(bytes)
  }
  for (let round = 0; round < rounds; round += 20) {
    const replies = await Promise.all(Array.from({ length: 20 }, () => raw(validator.port, mutate(), { limitMs: 60 })))
    for (const { text } of replies) expect(responsesIn(text)).toBeLessThanOrEqual(1)
  }
  expect((await raw(validator.port, good(), { enough: responses(1) })).text).toContain('"code":"VALID"')
}, 600_000)
