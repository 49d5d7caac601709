import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, type Random, random } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import {
  endChildren,
  memoryMib,
  freePort,
  metric,
  type Service,
  startValidator,
  until,
  untilReady,
} from './support/children.ts'
import { check, deactivate } from './support/client.ts'
import { chunkings, framings, requestLines } from './support/framings.ts'
import { byLength, figure, quantiles, seedOr } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

/** Tests requests that no well-behaved client sends. A smuggled request would release the slot of the victim. */

let postgres: TestPostgres
let validator: Service
let reference: { server: Server; port: number; seen: Map<string, number> }
let secret: string
let key: string

beforeAll(async () => {
  postgres = await createPostgres()
  const pool = openPool(postgres.url)
  const organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
  key = (await insertLicense(pool, { organizationId, maxMachines: 2 })).key
  await pool.end()
  validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
  await until(async () => (await ask('victim')) === 'VALID')
  await until(async () => (await ask('other')) === 'VALID')
  reference = await startReference()
})
afterAll(async () => {
  await endChildren()
  reference.server.close()
  await postgres.remove()
})

const ask = async (fingerprint: string): Promise<string> =>
  (await check(validator.port, secret, { license: key, fingerprint })).code

/** Asserts that the victim still has its slot and that checks get the expected verdicts. */
async function expectNothingSmuggled(): Promise<void> {
  expect([await ask('victim'), await ask('third')]).toEqual(['VALID', 'TOO_MANY_MACHINES'])
}

/**
 * Starts a server with Node's strict parser. The number of requests that this parser finds in the same bytes is the reference.
 */
async function startReference(): Promise<typeof reference> {
  const seen = new Map<string, number>()
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      const from = String(request.socket.remotePort)
      seen.set(from, (seen.get(from) ?? 0) + 1)
      response.end('{}')
    })
  })
  const port = await freePort()
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  return { server, port, seen }
}

function post(path: string, headers: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n${headers}\r\n\r\n${body}`
}

const validation = (): string => JSON.stringify({ license: key, fingerprint: 'other' })
const good = (): string => post('/api/v2/license/validate', `Content-Length: ${validation().length}`, validation())

function inChunks(body: string): string {
  const [first, rest] = [body.slice(0, 9), body.slice(9)]
  return `9\r\n${first}\r\n${rest.length.toString(16)}\r\n${rest}\r\n0\r\n\r\n`
}

function theft(): string {
  const body = JSON.stringify({ licenseKey: key, fingerprint: 'victim' })
  return post('/api/v1/deactivate', `Content-Length: ${body.length}`, body)
}

interface Exchange {
  text: string
  localPort: number
}

/** Writes bytes. Resolves to the response when the peer closes the connection, or has sent nothing for `silentMs` after the response. */
function exchange(port: number, bytes: string | Uint8Array, silentMs = 40): Promise<Exchange> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    let localPort = 0
    const finish = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, localPort })
    }
    const timer = setTimeout(finish, silentMs + 400)
    socket.on('connect', () => {
      localPort = socket.localPort ?? 0
      socket.write(bytes)
    })
    socket.on('data', (data) => {
      text += data.toString('latin1')
      clearTimeout(timer)
      setTimeout(finish, silentMs)
    })
    socket.on('error', () => undefined)
    socket.on('close', finish)
  })
}

/** Writes a text in two parts with a pause of 15 ms, so that they arrive in two packets. Resolves to all received bytes. */
function inTwoPackets(whole: string, at: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(validator.port, '127.0.0.1').setNoDelay(true)
    let text = ''
    const timer = setTimeout(() => socket.destroy(), 500)
    socket.on('data', (data) => (text += data.toString('latin1'))).on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
    socket.write(Buffer.from(whole.slice(0, at), 'latin1'))
    setTimeout(() => socket.write(Buffer.from(whole.slice(at), 'latin1')), 15)
  })
}

/**
 * Returns the number of JSON responses. The parser's own errors are not JSON. Responses 404 and 405 are excluded, because
 * a mutated second request mostly has an unknown path or method.
 */
const answersIn = (text: string): number =>
  text.split('HTTP/1.1 ').filter((part) => part.includes('content-type: application/json') && !/^40[45]/.test(part))
    .length

test.each(framings)('accepts no smuggled request with %s', async (_name, headers) => {
  // A parser may read the following bytes as a body or as a request.
  const rests = ['', '0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n', 'hello'].map((prefix) => prefix + theft())
  const answers = await Promise.all(
    rests.map((rest) => {
      const head = headers.replaceAll('$', String(rest.length))
      return exchange(validator.port, post('/api/v2/license/validate', head, rest))
    }),
  )
  for (const { text } of answers) {
    expect(answersIn(text), JSON.stringify(text)).toBeLessThanOrEqual(1)
    expect(text).not.toContain('"deactivated":true')
  }
  await expectNothingSmuggled()
})

test.each(chunkings)('accepts no smuggled request in a chunked body with %s', async (_name, body) => {
  const whole = post('/api/v2/license/validate', 'Transfer-Encoding: chunked', body.replace('$', theft))
  const headEnd = whole.indexOf('\r\n\r\n') + 4
  const texts = await Promise.all([
    exchange(validator.port, Buffer.from(whole, 'latin1')).then(({ text }) => text),
    ...[headEnd, headEnd + 1, headEnd + 4, whole.length - 20].map((at) => inTwoPackets(whole, at)),
  ])
  for (const text of texts) {
    expect(answersIn(text), JSON.stringify(text)).toBeLessThanOrEqual(1)
    expect(text).not.toMatch(/"deactivated":true|"valid"/)
  }
  await expectNothingSmuggled()
})

test('sends at most one response to a malformed request line or Host header', async () => {
  const hosts = ['Host: x\r\n', '', 'Host: x\r\nHost: y\r\n', 'Host:\r\n', `Host: ${'x'.repeat(4_000)}\r\n`]
  const body = validation()
  const rest = `Authorization: Bearer ${secret}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  for (const line of requestLines) {
    const heads = hosts.map((host) => Buffer.from(`${line}\r\n${host}${rest}`, 'latin1'))
    const answers = await Promise.all(heads.map((head) => exchange(validator.port, head, 10)))
    for (const { text } of answers) expect(answersIn(text), line).toBeLessThanOrEqual(1)
  }
  await expectNothingSmuggled()
})

function mutate(base: Buffer, from: Random): Buffer {
  const bytes = [...base]
  const tokens = [
    '\r\n',
    '\n',
    '\r',
    '\0',
    ' ',
    ':',
    'Content-Length: 0\r\n',
    'Transfer-Encoding: chunked\r\n',
    '0\r\n\r\n',
    '{',
    '"',
    ',',
  ]
  for (let edits = 1 + from.int(4); edits > 0; edits--) {
    const at = from.int(bytes.length)
    const how = from.int(5)
    if (how === 0) bytes.splice(at, 1 + from.int(8))
    else if (how === 1) bytes.splice(at, 0, ...from.bytes(1 + from.int(4)))
    else if (how === 2) bytes.splice(at, 0, ...Buffer.from(from.pick(tokens)))
    else if (how === 3) bytes.splice(at, 0, ...bytes.slice(at, at + from.int(60)))
    else bytes[at] = from.int(256)
  }
  return Buffer.from(bytes)
}

test('finds no more requests in mutated bytes than a strict parser', async () => {
  const seed = seedOr(4_711)
  const from = random(seed)
  const most = byLength(1_200, 100_000)
  const chunked = post('/api/v2/license/validate', 'Transfer-Encoding: chunked', inChunks(validation()))
  const bases = [
    good(),
    post('/api/v1/validate', 'Content-Length: 17', '{"licenseKey":""}'),
    good() + good(),
    chunked,
    chunked + theft(),
  ]
  const wide = byLength(40, 120)
  let warmMib = 0
  let answered = 0
  for (let done = 0; done < most; done += wide) {
    const batch = Array.from({ length: wide }, () => {
      const base = from.pick(bases)
      return { bytes: mutate(Buffer.from(base), from), requests: base.split(' HTTP/1.1').length - 1 }
    })
    await Promise.all(
      batch.map(async ({ bytes, requests }) => {
        const [ours, theirs] = await Promise.all([
          exchange(validator.port, bytes, 15),
          exchange(reference.port, bytes, 15),
        ])
        const answers = answersIn(ours.text)
        answered += answers
        const strict = reference.seen.get(String(theirs.localPort)) ?? 0
        reference.seen.delete(String(theirs.localPort))
        expect(answers, `seed ${seed}: ${JSON.stringify(bytes.toString('latin1'))}`).toBeLessThanOrEqual(
          Math.max(requests, strict),
        )
      }),
    )
    if (done < most / 5) warmMib = await memoryMib(validator)
  }
  const endMib = await memoryMib(validator)
  figure('Mutated requests', { sent: most, answered, 'memory after a fifth, MiB': warmMib, 'in the end, MiB': endMib })
  expect(endMib - warmMib).toBeLessThan(64)
  await expectNothingSmuggled()
})

test('frees the memory of clients that disconnect after any byte', async () => {
  const whole = Buffer.from(good())
  const before = await memoryMib(validator)
  const leave = (at: number, isRude: boolean): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(validator.port, '127.0.0.1', () => {
        socket.write(whole.subarray(0, at), () => {
          if (isRude) socket.resetAndDestroy()
          else socket.end()
          resolve()
        })
      })
      socket.on('error', () => resolve())
    })
  for (let round = 0; round < byLength(1, 20); round++)
    for (let at = 1; at <= whole.length; at++) await Promise.all([leave(at, true), leave(at, false)])
  await until(async () => (await ask('victim')) === 'VALID')
  expect((await memoryMib(validator)) - before).toBeLessThan(32)
})

test('ends a thousand slow requests and serves other clients meanwhile', async () => {
  const sockets: Socket[] = []
  let gone = 0
  const head = Buffer.from(good()).subarray(0, -10)
  for (let i = 0; i < 1_000; i++) {
    const socket = connect(validator.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.on('close', () => gone++)
    socket.resume()
    socket.write(head.subarray(0, -(i % 40)))
    sockets.push(socket)
  }
  const drip = setInterval(() => {
    for (const socket of sockets) socket.write(' ')
  }, 250)
  const tookMs: number[] = []
  const startedMs = performance.now()
  while (performance.now() - startedMs < byLength(1_500, 5_000)) {
    const reply = await check(validator.port, secret, { license: key, fingerprint: 'victim' })
    expect(reply.code).toBe('VALID')
    tookMs.push(reply.tookMs)
    await sleep(5)
  }
  figure('Beside a thousand slow clients, checks took ms', quantiles(tookMs))
  await until(() => gone > 900)
  clearInterval(drip)
  for (const socket of sockets) socket.destroy()
  expect(await metric(validator, 'keyward_http_events_total')).toBeGreaterThan(900)
})

test('executes the smuggled request when a client sends it in the normal way', async () => {
  await expect.poll(async () => (await deactivate(validator.port, secret, key, 'victim')).text).toContain('true')
})
