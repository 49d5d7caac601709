/** Tests the forms in which HTTP clients send the same request (docs/api.md#h6): framing, encoding and headers. */

import { connect } from 'node:net'

import { isBehindBalancer } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, raw, type Reply, responses, send, someText, startLoaded, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
let world: World
let validator: RunningValidator
let license: string

beforeAll(async () => {
  world = await createWorld()
  license = (await world.license({ maxMachines: null })).key
  validator = await startLoaded(world.database.url)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const check = (): string => JSON.stringify({ license })
const message = (headers: string, content: string, path = V2): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\n${headers}\r\n\r\n${content}`

/** Splits a body into chunks of this many bytes. */
function chunked(body: string, bytes: number): string {
  let text = ''
  for (let at = 0; at < body.length; at += bytes) {
    const chunk = body.slice(at, at + bytes)
    text += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
  }
  return `${text}0\r\n\r\n`
}

const asChunks = (body: string, bytes = 7): string => message('Transfer-Encoding: chunked', chunked(body, bytes))

test.each([1, 7, 1_000])('reads a body in chunks of %i bytes', async (bytes) => {
  const { text } = await raw(validator.port, asChunks(check(), bytes), { enough: responses(1) })
  expect(text).toContain('"code":"VALID"')
})

test('reads a chunked body whose bytes arrive one at a time', async () => {
  const whole = asChunks(check())
  const headEnd = whole.indexOf('\r\n\r\n') + 4
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(validator.port, '127.0.0.1').setNoDelay(true)
    socket.on('error', reject).on('data', (data) => resolve(data.toString()))
    socket.write(whole.slice(0, headEnd))
    let at = headEnd
    const step = (): void => {
      if (at >= whole.length) return
      socket.write(whole.charAt(at++))
      setTimeout(step, 1)
    }
    step()
  })
  expect(text).toContain('"code":"VALID"')
})

test('applies the body limit to the content of a chunked body, not to its framing', async () => {
  const padded = (bytes: number): string => check().padEnd(bytes, ' ')
  const most = await raw(validator.port, asChunks(padded(16_384), 100), { enough: responses(1) })
  expect(most.text).toContain('"code":"VALID"')
  const more = await raw(validator.port, asChunks(padded(16_385), 100), { enough: responses(1) })
  expect(more.text).toMatch(/^HTTP\/1\.1 413 .*"The body is larger than 16 KiB\."/s)
})

test.each([100_000, 1_100_000])('delivers 413 to a client that sends %i bytes before it reads', async (bytes) => {
  const large = check().padEnd(bytes, ' ')
  for (const sent of [message(`Content-Length: ${bytes}`, large), asChunks(large, 1_000)]) {
    const text = await new Promise<string>((resolve) => {
      const socket = connect(validator.port, '127.0.0.1').pause()
      let received = ''
      socket.on('error', () => undefined).on('close', () => resolve(received))
      socket.on('data', (data) => {
        received += data.toString('latin1')
        if (responses(1)(received)) socket.destroy()
      })
      socket.write(sent, () => socket.resume())
    })
    expect(text.slice(0, 12)).toBe('HTTP/1.1 413')
  }
})

test('returns 408 when a chunked body does not end within 2 seconds', async ({ skip }) => {
  skip(isBehindBalancer, 'a balancer has its own deadlines and connections')
  const { text, closed } = await raw(validator.port, asChunks(check()).slice(0, -5))
  expect([text.slice(0, 12), closed]).toEqual(['HTTP/1.1 408', true])
})

test('sends each chunked request its own response', async () => {
  const licenses = await Promise.all(
    [1, 2, 3, 4, 5, 6].map((month) => world.license({ maxMachines: null, expiresAt: new Date(`2031-0${month}-01`) })),
  )
  const sent = licenses.map(({ key }) => asChunks(JSON.stringify({ license: key })))
  const expiries = async (): Promise<(string | undefined)[]> => {
    const replies = await Promise.all(sent.map((one) => raw(validator.port, one, { enough: responses(1) })))
    return replies.map(({ text }) => /2031-0\d/.exec(text)?.[0])
  }
  const own = [1, 2, 3, 4, 5, 6].map((month) => `2031-0${month}`)
  // The licenses are committed in no particular order, so the test waits until the validator finds each of them.
  await expect.poll(expiries).not.toContain(undefined)
  for (let round = 0; round < 20; round++) expect(await expiries()).toEqual(own)
})

test('closes the connection after a chunked body, and ignores data after the body', async ({ skip }) => {
  skip(isBehindBalancer, 'a balancer has its own connections to the validator')
  const next = message(`Content-Length: ${check().length}`, check())
  const together = await raw(validator.port, asChunks(check()) + next)
  expect([together.text, together.closed]).toEqual(['', true])
  const alone = await raw(validator.port, asChunks(check()))
  expect(alone.text).toMatch(/connection: close/i)
  expect(alone.closed).toBe(true)
})

test.for([
  ['another transfer-encoding', 'Transfer-Encoding: gzip, chunked', '0\r\n\r\n'],
  ['a chunked encoding in capitals', 'Transfer-Encoding: CHUNKED', '0\r\n\r\n'],
  ['two chunked encodings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n'],
  ['an empty transfer-encoding', 'Transfer-Encoding:\r\nContent-Length: 2', '{}'],
  ['two lengths', 'Content-Length: 2\r\nContent-Length: 2', '{}'],
  ['an empty length', 'Content-Length:', ''],
])(
  'returns an error with status 400 for %s, and closes the connection',
  async ([, headers = '', content = ''], { skip }) => {
    skip(isBehindBalancer, 'a balancer corrects some of these requests, and rejects the others itself')
    const { text, closed } = await raw(validator.port, message(headers, content))
    expect([text.slice(0, 12), closed]).toEqual(['HTTP/1.1 400', true])
    const [, body = ''] = text.split('\r\n\r\n')
    expect(JSON.parse(body)).toEqual({ status: 400, message: someText, code: 'BAD_REQUEST' })
  },
)

test('sends 100 Continue to a client that waits for it', async () => {
  for (const framing of [`Content-Length: ${check().length}`, 'Transfer-Encoding: chunked']) {
    const content = framing.startsWith('T') ? chunked(check(), 9) : check()
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(validator.port, '127.0.0.1')
      let received = ''
      socket.on('error', reject).on('data', (data) => {
        received += data.toString()
        if (received === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(content)
        if (received.endsWith('}')) resolve(received)
      })
      socket.write(message(`Expect: 100-continue\r\n${framing}`, ''))
    })
    expect(text).toContain('"code":"VALID"')
  }
})

const sendBytes = (body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Reply> =>
  send(validator.port, V2, { body, secret: world.secret, headers })

test.each([
  'application/json',
  'application/json; charset=utf-8',
  'Application/JSON;Charset="UTF-8"',
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/vnd.api+json',
  '*/*',
  '',
])('accepts the content type "%s"', async (type) => {
  expect((await sendBytes(check(), { 'content-type': type })).status).toBe(200)
})

test('skips one byte order mark before the JSON', async () => {
  expect((await sendBytes(`\ufeff${check()}`)).status).toBe(200)
  expect((await sendBytes(`\ufeff ${check()}`)).status).toBe(200)
  expect((await sendBytes(`\ufeff\ufeff${check()}`)).status).toBe(422)
})

test('accepts header names in any case', async () => {
  for (const change of [(text: string) => text.toUpperCase(), (text: string) => text.toLowerCase()]) {
    const headers = `${change('Content-Length')}: ${check().length}\r\n${change('Authorization')}: Bearer ${world.secret}`
    const sent = `POST ${V2} HTTP/1.1\r\n${change('Host')}: x\r\n${headers}\r\n\r\n${check()}`
    expect((await raw(validator.port, sent, { enough: responses(1) })).text).toContain('"code":"VALID"')
  }
})

test.each(['gzip', 'deflate', 'br', 'GZIP', 'identity, gzip'])(
  'rejects the content-encoding %s with 415',
  async (encoding) => {
    const reply = await sendBytes(check(), { 'content-encoding': encoding })
    expect([reply.status, reply.headers['accept-encoding']]).toEqual([415, 'identity'])
    expect(reply.body).toEqual({
      status: 415,
      message: 'Compressed bodies are not supported. Send the body without a Content-Encoding.',
      code: 'UNSUPPORTED_MEDIA_TYPE',
    })
  },
)

test('accepts the content-encoding identity', async () => {
  expect((await sendBytes(check(), { 'content-encoding': 'identity' })).status).toBe(200)
})
