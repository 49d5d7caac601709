/** Tests connections: HEAD, pipelined requests, and responses that close the connection (docs/api.md#h8). */

import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { isBehindBalancer } from '@keyward/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { responses, createWorld, raw, send, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const KEYS = '/api/v1/public-keys'
let world: World
let validator: RunningValidator
let license: string

beforeAll(async () => {
  world = await createWorld()
  license = (await world.license({ maxMachines: null })).key
  validator = await startLoaded(world.database.url)
})
beforeEach(({ skip }) => skip(isBehindBalancer, 'a balancer has its own connections to the validator'))
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

function message(method: string, path: string, body = ''): string {
  const length = method === 'POST' ? `Content-Length: ${body.length}\r\n` : ''
  return `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\n${length}\r\n${body}`
}
const check = (): string => message('POST', V2, JSON.stringify({ license }))
const statusesIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? '')

/** A persistent connection on which each request waits for the previous response. */
class Line {
  readonly socket: Socket
  isClosed = false
  text = ''

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('data', (data) => (this.text += data.toString('latin1')))
    this.socket.on('error', () => undefined)
    this.socket.on('close', () => (this.isClosed = true))
  }

  async request(text: string): Promise<string> {
    this.text = ''
    this.socket.write(text)
    await until(() => this.text.includes('\r\n\r\n') || this.isClosed)
    return this.text
  }
}

test.each([
  ['an endpoint', KEYS, '200'],
  ['an unknown path', '/nowhere', '404'],
  ['a wrong method', V2, '405'],
])('returns the length of the body for HEAD of %s, and keeps the connection open', async (_name, path, status) => {
  const line = new Line(validator.port)
  const head = await line.request(message('HEAD', path))
  const get = await line.request(message('GET', path))
  line.socket.destroy()
  const [body] = get.split('\r\n\r\n').slice(1)
  expect([...statusesIn(head), ...statusesIn(get)]).toEqual([status, status])
  expect(head).toMatch(new RegExp(`content-length: ${body?.length}\r\n`, 'i'))
  expect(head.split('\r\n\r\n')[1]).toBe('')
  expect(head).not.toMatch(/transfer-encoding|connection: close/i)
})

test('responds to HEAD requests and checks that are pipelined in one packet', async () => {
  const stranger = `HEAD ${KEYS} HTTP/1.1\r\nHost: x\r\n\r\n`
  const { text, closed } = await raw(validator.port, stranger + check() + stranger + check(), {
    // The responses to HEAD have a content-length but no body.
    enough: (received) => statusesIn(received).length === 4 && received.endsWith('}'),
  })
  expect(statusesIn(text)).toEqual(['401', '200', '401', '200'])
  expect(closed).toBe(false)
})

test('closes the connections of HEAD requests when they are idle (with KEYWARD_LONG) or the validator stops', async () => {
  const other = await startLoaded(world.database.url)
  const lines = Array.from({ length: 50 }, () => new Line(other.port))
  const heads = await Promise.all(lines.map((line) => line.request(message('HEAD', KEYS))))
  expect(heads.flatMap(statusesIn)).toEqual(Array.from({ length: 50 }, () => '200'))
  expect(lines.some((line) => line.isClosed)).toBe(false)
  if (!process.env['KEYWARD_LONG']) await other.close()
  await until(() => lines.every((line) => line.isClosed))
  await other.close()
})

test('returns 413 for HEAD with a body over the limit, and closes the connection', async () => {
  const { text, closed } = await raw(
    validator.port,
    `HEAD ${KEYS} HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n`,
  )
  const body = JSON.stringify({ code: 'PAYLOAD_TOO_LARGE', detail: 'The body is larger than 16 KiB.' })
  expect(statusesIn(text)).toEqual(['413'])
  expect(text).toMatch(new RegExp(`content-length: ${body.length}\r\n`, 'i'))
  expect(text).toMatch(/connection: close/i)
  expect(closed).toBe(true)
})

test('sends nothing after a 413 response', async () => {
  const large = message('POST', V2, 'x'.repeat(17_000))
  const alone = await raw(validator.port, large)
  expect([statusesIn(alone.text), alone.closed]).toEqual([['413'], true])
  const { text, closed } = await raw(validator.port, large + check())
  expect(text).not.toContain('"valid"')
  expect(closed).toBe(true)
})

test('responds in order up to a request that waits for Postgres, and closes the connection if another request follows', async () => {
  const { key } = await world.license({ maxMachines: 1 })
  const limited = { license: key, fingerprint: 'm' }
  await until(async () => (await send(validator.port, V2, { body: limited, secret: world.secret })).status === 200)
  const release = message('POST', '/api/v1/deactivate', JSON.stringify({ licenseKey: key, fingerprint: 'm' }))
  const last = await raw(validator.port, check() + release, { enough: responses(2) })
  expect(statusesIn(last.text)).toEqual(['200', '200'])
  expect(last.text).toMatch(/"VALID".*"deactivated":true/s)
  const between = await raw(validator.port, release + check())
  expect(between).toEqual({ text: '', closed: true })
  const again = await raw(validator.port, release, { enough: responses(1) })
  expect(again.text).toContain('"deactivated":false')
})

test('queues a request that arrives while another waits for Postgres', async () => {
  const { key, id } = await world.license({ maxMachines: 1 })
  const limited = { license: key, fingerprint: 'm' }
  await until(async () => (await send(validator.port, V2, { body: limited, secret: world.secret })).status === 200)
  const release = message('POST', '/api/v1/deactivate', JSON.stringify({ licenseKey: key, fingerprint: 'm' }))
  const holder = await world.database.pool.connect()
  const line = new Line(validator.port)
  try {
    await holder.query('begin')
    await holder.query('select from license_slots where license_id = $1 for update', [id])
    const { rows } = await holder.query<{ lockedAt: Date }>('select clock_timestamp() as "lockedAt"')
    const lockedAt = rows[0]?.lockedAt
    const released = line.request(release)
    // A release of a locked license is retried until the lock is gone. Another connection observes the retry, because
    // pg_stat_activity is constant within a transaction.
    const attempted = `select from pg_stat_activity where query like '%release_slots%' and query_start > $1
      and pid <> pg_backend_pid()`
    await until(async () => ((await world.database.pool.query(attempted, [lockedAt])).rowCount ?? 0) > 0)
    line.socket.write(check())
    await sleep(50)
    expect(line.isClosed).toBe(false)
    await holder.query('rollback')
    await released
    await until(() => line.text.includes('"VALID"') || line.isClosed)
    expect(statusesIn(line.text)).toEqual(['200', '200'])
    expect(line.text).toMatch(/"deactivated":true.*"VALID"/s)
  } finally {
    holder.release(true)
    line.socket.destroy()
  }
})

test('sends the date header, and no header that names the library', async () => {
  const { headers } = await send(validator.port, V2, { body: { license }, secret: world.secret })
  expect(Math.abs(Date.parse(String(headers['date'])) - Date.now())).toBeLessThan(60_000)
  expect(Object.keys(headers)).not.toContain('uwebsockets')
})
