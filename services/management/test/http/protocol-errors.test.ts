import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { problem } from '@keyward/contract'
import { isBehindBalancer } from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { type Harness, operatorToken, startHarness } from '../support/harness.ts'

const MAX_CONNECTIONS = 20
let harness: Harness

beforeAll(async () => {
  harness = await startHarness({}, { maxConnections: MAX_CONNECTIONS })
})
beforeEach(({ skip }) => skip(isBehindBalancer, 'a balancer responds to these requests itself'))
afterAll(() => harness.close())

/** Sends the bytes and returns everything received until the connection ends. */
async function exchange(...parts: string[]): Promise<string> {
  const socket: Socket = connect(Number(new URL(harness.origin).port), '127.0.0.1')
  for (const part of parts) socket.write(part)
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

const line = 'GET /api/v1/organizations HTTP/1.1\r\n'

test.each([
  ['bytes that are not HTTP', 'GARBAGE\r\n\r\n', 400, 'MALFORMED_HTTP'],
  ['a request without a host', `${line}\r\n`, 400, 'MALFORMED_HTTP'],
  ['headers that are too large', `${line}host: x\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ['an unknown expectation', `${line}host: x\r\nexpect: tea\r\n\r\n`, 417, 'EXPECTATION_FAILED'],
])('returns a problem for %s', async (_, request, status, code) => {
  const [head = '', body = ''] = (await exchange(request)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  const headers = new Headers(
    head
      .split('\r\n')
      .slice(1)
      .map((one): [string, string] => {
        const [name = '', value = ''] = one.split(/: (.*)/)
        return [name, value]
      }),
  )
  expect(headers.get('content-type')).toContain('application/problem+json')
  expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(body))
  expect(headers.get('connection')).toBe('close')
  expect(problem.parse(JSON.parse(body))).toMatchObject({ status, code, requestId: headers.get('x-request-id') })
})

test('sends the responses to earlier requests of the connection first', async () => {
  const first = `${line}host: x\r\nauthorization: Bearer ${operatorToken}\r\n\r\n`
  const text = await exchange(first, first, 'GARBAGE\r\n\r\n')
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
})

const authorized = `host: x\r\nauthorization: Bearer ${operatorToken}\r\n`
const chunked = 'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n'
const broken = '5\r\n{"nam\r\nnonsense\r\n'

test('sends the response to a complete request before the error for the malformed body of the next request', async () => {
  const body = JSON.stringify({ name: 'Before' })
  const path = 'POST /api/v1/organizations HTTP/1.1\r\n'
  const length = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const text = await exchange(path + authorized + length + body + path + authorized + chunked + broken)
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 201', 'HTTP/1.1 400'])
})

test('sends one response to a request that is rejected before its malformed body', async () => {
  const text = await exchange(`POST /api/v1/organizations HTTP/1.1\r\nhost: x\r\n${chunked}5\r\n{"nam\r\n`, broken)
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401'])
})

test('sends one error for any number of malformed bytes after a slow request', async () => {
  const warnings: Error[] = []
  const warn = (warning: Error): void => void warnings.push(warning)
  process.on('warning', warn)
  const holder = await harness.database.pool.connect()
  await holder.query('begin; lock table organizations in access exclusive mode')
  const port = Number(new URL(harness.origin).port)
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  let text = ''
  socket.on('data', (data) => (text += String(data))).write(`${line}${authorized}\r\n`)
  const closed = once(socket, 'close')
  for (let i = 0; i < 30; i++) {
    await sleep(5)
    socket.write('GARBAGE\r\n\r\n')
  }
  await holder.query('rollback')
  holder.release()
  await closed
  process.off('warning', warn)
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  expect(warnings).toEqual([])
})

test('sends one error for a malformed body', async () => {
  const head = `POST /api/v1/organizations HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${operatorToken}\r\n`
  const body = 'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"nam\r\nnonsense\r\n'
  const text = await exchange(head + body)
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400'])
  expect(text).toContain('MALFORMED_HTTP')
})

test('closes connections beyond the maximum, and accepts new ones when others have ended', async () => {
  const open = Array.from({ length: MAX_CONNECTIONS }, () =>
    connect(Number(new URL(harness.origin).port), '127.0.0.1').on('error', () => undefined),
  )
  await Promise.all(open.map((socket) => once(socket, 'connect')))
  const status = () =>
    exchange(`${line}host: x\r\nconnection: close\r\n\r\n`).then(
      (text) => text.slice(9, 12),
      () => '',
    )
  expect(await status()).toBe('')
  for (const socket of open) socket.destroy()
  await expect.poll(status).toBe('401')
})
