/** Tests batches (docs/api.md#h13): the slots of their checks, an outage of Postgres, and the forms of the request. */

import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'

import {
  insertApiKey,
  insertLicense,
  insertOrganization,
  insertRule,
  isBehindBalancer,
  type Proxy,
  startProxy,
} from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, raw, type Reply, responses, send, someText, startLoaded, until, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const BATCH = '/api/v2/license/validate/batch'
const agent = new Agent({ keepAlive: true, maxSockets: 20 })
let world: World
let proxy: Proxy
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  const url = new URL(world.database.validatorUrl)
  proxy = await startProxy(Number(url.port), url.hostname)
  url.hostname = '127.0.0.1'
  url.port = String(proxy.port)
  validator = await startLoaded(url.href, { corsOrigins: ['https://app.example.com'] })
})
afterAll(async () => {
  agent.destroy()
  await validator.close()
  await proxy.close()
  await world.database.drop()
})

const resultsOf = (reply: Reply): unknown[] => z.object({ results: z.array(z.unknown()) }).parse(reply.body).results
const codeOf = (result: unknown): string => z.looseObject({ code: z.string() }).parse(result).code
const batch = (checks: unknown, headers: Record<string, string> = {}, secret = world.secret): Promise<Reply> =>
  send(validator.port, BATCH, { body: { checks }, secret, headers, agent })
const single = (body: unknown, headers: Record<string, string> = {}, secret = world.secret): Promise<Reply> =>
  send(validator.port, V2, { body, secret, headers, agent })

/** Resolves when the validator has applied all rows inserted so far. */
async function followed(): Promise<void> {
  const { key } = await world.license({ status: 'suspended' })
  await until(async () => (await single({ license: key })).text.includes('SUSPENDED'))
}

async function query(text: string, values: unknown[]): Promise<unknown[]> {
  return (await world.database.pool.query<Record<string, unknown>>(text, values)).rows
}

/** Commits the statements of `run` together. */
async function inTransaction(run: (client: Pick<typeof world.database.pool, 'query'>) => Promise<void>): Promise<void> {
  const client = await world.database.pool.connect()
  try {
    await client.query('begin')
    await run(client)
    await client.query('commit')
  } finally {
    client.release()
  }
}

/** Sends a batch repeatedly, until no check is UNAVAILABLE because of a claim that took too long. */
async function decided(checks: readonly object[]): Promise<unknown[]> {
  const results = resultsOf(await batch(checks))
  return results.some((result) => codeOf(result) === 'UNAVAILABLE') ? await decided(checks) : results
}

test('answers many batches that arrive together, each with its own results', async () => {
  const { key } = await world.license({ maxMachines: null })
  await until(async () => (await single({ license: key })).text.includes('VALID'))
  const replies = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      batch(Array.from({ length: 100 }, (__, i) => ({ license: i === n ? key : `none ${n}` }))),
    ),
  )
  for (const [n, reply] of replies.entries())
    expect(resultsOf(reply).map(codeOf)).toEqual(
      Array.from({ length: 100 }, (_, i) => (i === n ? 'VALID' : 'NOT_FOUND')),
    )
})

test('evaluates the first address rule of an organization in each check that sees its change', async () => {
  const { pool } = world.database
  const organizationId = await insertOrganization(pool)
  const { secret } = await insertApiKey(pool, { organizationId })
  const license = await insertLicense(pool, { organizationId, status: 'revoked' })
  const checks = Array.from({ length: 100 }, () => ({ license: license.key }))
  const codes = async (): Promise<string[]> => resultsOf(await batch(checks, {}, secret)).map(codeOf)
  await until(async () => (await send(validator.port, V2, { body: checks[0], secret })).text.includes('REVOKED'))
  const seen = new Set<string>()
  const done = new AbortController()
  const load = Array.from({ length: 3 }, async () => {
    while (!done.signal.aborted) for (const code of await codes()) seen.add(code)
  })
  for (let n = 0; n < 100; n++) {
    // The states before and after each change reject the check.
    await inTransaction(async (client) => {
      await client.query(`update licenses set status = 'active' where id = $1`, [license.id])
      await insertRule(client, { organizationId, type: 'IP', value: '0.0.0.0/0' })
    })
    await inTransaction(async (client) => {
      await client.query(`update licenses set status = 'revoked' where id = $1`, [license.id])
      await client.query('delete from access_rules where organization_id = $1', [organizationId])
    })
  }
  done.abort()
  await Promise.all(load)
  expect(seen).toEqual(new Set(['REVOKED', 'BLACKLISTED']))
})

describe('slots', () => {
  test('grants one slot to a machine that a batch contains repeatedly', async () => {
    const license = await world.license({ maxMachines: 1 })
    await followed()
    const check = { license: license.key, fingerprint: 'the one' }
    const results = await decided(Array.from({ length: 100 }, () => check))
    expect(new Set(results.map(codeOf))).toEqual(new Set(['VALID']))
    expect(await query('select used from license_slots where license_id = $1', [license.id])).toEqual([{ used: 1 }])
  })

  test('never grants more slots than the limit when the machines of concurrent batches race for them', async () => {
    const license = await world.license({ maxMachines: 7 })
    await followed()
    const machineOf = (b: number, i: number): string => `m ${(b * 37 + i) % 200}`
    const batches = await Promise.all(
      Array.from({ length: 5 }, (_, b) =>
        decided(Array.from({ length: 100 }, (__, i) => ({ license: license.key, fingerprint: machineOf(b, i) }))),
      ),
    )
    const codes = batches.flatMap((results, b) =>
      results.map((result, i) => [codeOf(result), machineOf(b, i)] as const),
    )
    expect(new Set(codes.map(([code]) => code))).toEqual(new Set(['VALID', 'TOO_MANY_MACHINES']))
    const machines = new Set(codes.filter(([code]) => code === 'VALID').map(([, machine]) => machine))
    expect(machines.size).toBe(7)
    expect(await query('select used from license_slots where license_id = $1', [license.id])).toEqual([{ used: 7 }])
  })

  test('starts a term once, with the same expiresAt for the whole batch', async () => {
    const license = await world.license({ durationDays: 30, maxMachines: 50 })
    await followed()
    const checks = Array.from({ length: 50 }, (_, i) => ({ license: license.key, fingerprint: `m ${i}` }))
    const results = await decided(checks)
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1)
    expect(results[0]).toMatchObject({ code: 'VALID', expiresAt: someText })
  })
})

test('returns UNAVAILABLE only for the checks of a batch that need Postgres while Postgres is unreachable', async () => {
  const license = await world.license({ maxMachines: 100 })
  await followed()
  const check = (fingerprint: string): object => ({ license: license.key, fingerprint })
  expect(codeOf(resultsOf(await batch([check('known')]))[0])).toBe('VALID')
  proxy.refuse()
  try {
    const reply = await batch([check('known'), check('new 1'), { license: 'none' }, 7, check('new 2'), check('known')])
    expect(reply.status).toBe(200)
    expect(resultsOf(reply).map(codeOf)).toEqual([
      'VALID',
      'UNAVAILABLE',
      'NOT_FOUND',
      'INVALID_REQUEST',
      'UNAVAILABLE',
      'VALID',
    ])
    expect(resultsOf(reply)[1]).toEqual({ status: 503, message: someText, code: 'UNAVAILABLE' })
    expect(resultsOf(reply)[3]).toMatchObject({
      message: expect.stringMatching(/^The check must be a JSON object/) as unknown,
    })
  } finally {
    proxy.heal()
  }
  await until(async () => codeOf(resultsOf(await batch([check('new 1')]))[0]) === 'VALID')
})

describe('the request', () => {
  test.each([
    ['no checks', { checks: [] }],
    ['101 checks', { checks: Array.from({ length: 101 }, () => ({ license: 'a' })) }],
    ['checks that are not an array', { checks: { license: 'a' } }],
    ['a check that is not in `checks`', { license: 'a' }],
    ['an array', [{ license: 'a' }]],
    ['incomplete JSON', '{"checks":[{"license":"a"}'],
    ['invalid UTF-8', Buffer.from('{"checks":[{"license":"\xff"}]}', 'latin1')],
  ])('returns 422 for a whole batch with %s', async (_name, body) => {
    const reply = await send(validator.port, BATCH, { body, secret: world.secret })
    expect([reply.status, reply.body]).toEqual([422, { status: 422, message: someText, code: 'INVALID_REQUEST' }])
  })

  test('accepts at most 128 KiB in a batch, chunked or not, and at most 16 KiB on other paths', async () => {
    const padded = (bytes: number): string => '{"checks":[{"license":"a"}]}'.padEnd(bytes, ' ')
    const post = (body: string, path = BATCH): Promise<Reply> =>
      send(validator.port, path, { body, secret: world.secret })
    expect((await post(padded(131_072))).status).toBe(200)
    const reply = await post(padded(131_073))
    const message = 'The body is larger than 128 KiB.'
    expect([reply.status, reply.body]).toEqual([413, { status: 413, message, code: 'PAYLOAD_TOO_LARGE' }])
    expect((await post(padded(16_385), V2)).text).toContain('larger than 16 KiB')
    for (const [bytes, status] of [
      [131_072, 200],
      [131_073, 413],
    ] as const) {
      const body = padded(bytes)
      const head = `POST ${BATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.secret}\r\nTransfer-Encoding: chunked\r\n\r\n`
      const chunks = body.replaceAll(/[^]{1,4096}/g, (part) => `${part.length.toString(16)}\r\n${part}\r\n`)
      const { text } = await raw(validator.port, `${head}${chunks}0\r\n\r\n`, { enough: responses(1) })
      expect(text.slice(0, 12)).toBe(`HTTP/1.1 ${status}`)
    }
  })

  test('requires an API key and free capacity for a body over 16 KiB in several pieces', async ({ skip }) => {
    skip(isBehindBalancer, 'a balancer forwards a body only after it has received the whole body')
    const body = '{"checks":[{"license":"a"}]}'.padEnd(100_000, ' ')
    const [first, second] = [body.slice(0, 50_000), body.slice(50_000)]
    const open = (secret: string): Socket => {
      const socket = connect(validator.port, '127.0.0.1').setNoDelay(true)
      const head = `POST ${BATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n`
      socket.on('error', () => undefined).write(`${head}Content-Length: ${body.length}\r\n\r\n${first}`)
      return socket
    }
    const inPieces = async (secret: string): Promise<string> => {
      const socket = open(secret)
      setTimeout(() => socket.write(second), 100)
      const text = await new Promise<string>((resolve) => {
        socket.once('data', (data) => resolve(data.toString())).once('close', () => resolve(''))
      })
      socket.destroy()
      return text
    }
    expect(await inPieces('kwk_wrong')).toMatch(/^HTTP\/1\.1 401 .*"UNAUTHORIZED"/s)
    expect(await inPieces(world.secret)).toMatch(/^HTTP\/1\.1 200 .*NOT_FOUND/s)
    // A worker stores at most 256 large bodies, of which one organization may use half.
    await until(async () => {
      const held = Array.from({ length: 200 }, () => open(world.secret))
      const text = await inPieces(world.secret)
      for (const socket of held) socket.destroy()
      return text.startsWith('HTTP/1.1 503')
    })
    await until(async () => (await inPieces(world.secret)).startsWith('HTTP/1.1 200'))
  })

  test('requires an API key, POST and an uncompressed body, and supports CORS', async () => {
    expect((await send(validator.port, BATCH, { body: { checks: [{ license: 'a' }] } })).status).toBe(401)
    for (const method of ['GET', 'HEAD', 'PUT']) {
      const reply = await send(validator.port, BATCH, { method, secret: world.secret })
      expect([method, reply.status, reply.headers['allow']]).toEqual([method, 405, 'POST, OPTIONS'])
    }
    const origin = { origin: 'https://app.example.com' }
    const preflight = await send(validator.port, BATCH, { method: 'OPTIONS', headers: origin })
    expect([preflight.status, preflight.headers['access-control-allow-methods']]).toEqual([204, 'POST'])
    expect((await batch([{ license: 'a' }], origin)).headers['access-control-allow-origin']).toBe(origin.origin)
    const zipped = { body: 'x'.repeat(20_000), secret: world.secret, headers: { 'content-encoding': 'gzip' } }
    expect((await send(validator.port, BATCH, zipped)).status).toBe(415)
  })

  test('returns 404 for the path with a trailing slash', async ({ skip }) => {
    skip(isBehindBalancer, 'a balancer sends this path to management')
    expect((await send(validator.port, `${BATCH}/`, { body: {}, secret: world.secret })).status).toBe(404)
  })
})
