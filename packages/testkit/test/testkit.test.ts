import { once } from 'node:events'
import { connect, createServer } from 'node:net'

import pg from 'pg'
import { afterEach, expect, test } from 'vitest'

import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertOrganization,
  random,
  startProxy,
} from '../src/index.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

test('creates independent clones of the template and drops them', async () => {
  const [a, b] = await Promise.all([createTestDatabase(), createTestDatabase()])
  closers.push(b.drop)
  const organizationId = await insertOrganization(a.pool)
  await insertLicense(a.pool, { organizationId })
  await insertApiKey(a.pool, { organizationId })
  const count = 'select count(*)::integer as n from licenses'
  expect((await a.pool.query(count)).rows).toEqual([{ n: 1 }])
  expect((await b.pool.query(count)).rows).toEqual([{ n: 0 }])
  await a.drop()
  await expect(new pg.Client({ connectionString: a.url }).connect()).rejects.toThrow(/does not exist/)
})

test('throws on drop when a connection is still open', async () => {
  const database = await createTestDatabase()
  const leak = new pg.Client({ connectionString: database.validatorUrl, application_name: 'leak' })
  leak.on('error', () => undefined)
  await leak.connect()
  await expect(database.drop(200)).rejects.toThrow(/left open: leak/)
})

test('generates the same random values only for the same seed', () => {
  const draw = (seed: number) => Array.from({ length: 20 }, random(seed).next)
  expect(draw(7)).toEqual(draw(7))
  expect(draw(7)).not.toEqual(draw(8))
  const spread = new Set(Array.from({ length: 1_000 }, () => random(3).int(10)))
  expect(spread.size).toBe(1)
  const { shuffle, int } = random(3)
  expect(new Set(Array.from({ length: 1_000 }, () => int(10))).size).toBe(10)
  expect(shuffle([1, 2, 3, 4, 5]).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5])
})

test('recovers after the proxy has swallowed, cut and refused connections', async () => {
  const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket))
  await once(echo.listen(0, '127.0.0.1'), 'listening')
  closers.push(() => echo.close())
  const address = echo.address()
  const proxy = await startProxy(address !== null && typeof address === 'object' ? address.port : 0)
  closers.push(proxy.close)
  const open = async () => {
    const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }
  const answer = async (socket: ReturnType<typeof connect>, text: string, waitMs = 10_000) => {
    const got = once(socket, 'data').then(([data]: unknown[]) => String(data))
    const closed = once(socket, 'close').then(() => 'closed')
    socket.write(text)
    return await Promise.race([got, closed, new Promise<string>((resolve) => setTimeout(resolve, waitMs, 'nothing'))])
  }
  const first = await open()
  expect(await answer(first, 'a')).toBe('a')
  proxy.swallow()
  expect(await answer(first, 'b', 60)).toBe('nothing')
  proxy.heal()
  const second = await open()
  expect(await answer(second, 'c')).toBe('c')
  proxy.cut()
  expect(await answer(second, 'd')).toBe('closed')
  proxy.refuse()
  expect(await answer(await open(), 'e')).toBe('closed')
  proxy.heal()
  expect(await answer(await open(), 'f')).toBe('f')
})
