import { createTestDatabase, insertOrganization, startProxy, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { joinFeed, startListener } from '../src/index.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(() => database.drop())

function through(port: number): string {
  const url = new URL(database.validatorUrl)
  url.port = String(port)
  return url.href
}

test('a server that is away, comes, falls silent and comes back is found each time', async () => {
  const proxy = await startProxy(Number(new URL(database.url).port))
  proxy.refuse()
  const events: string[] = []
  let wakes = 0
  const listener = startListener(through(proxy.port), {
    heartbeatMs: 50,
    timeoutMs: 200,
    retryMs: 20,
    onWake: () => void wakes++,
    onConnected: () => void events.push('connected'),
    onError: () => void (events.at(-1) === 'error' || events.push('error')),
  })
  await expect.poll(() => events).toEqual(['error'])
  expect(listener.lastHeardAtMs()).toBe(-Infinity)
  proxy.heal()
  await expect.poll(() => events).toEqual(['error', 'connected'])
  await insertOrganization(database.pool)
  await expect.poll(() => wakes).toBe(1)

  proxy.swallow()
  await expect.poll(() => events).toEqual(['error', 'connected', 'error'])
  const heard = listener.lastHeardAtMs()
  expect(listener.isConnected()).toBe(false)
  proxy.heal()
  await expect.poll(() => events.length).toBe(4)
  expect(listener.lastHeardAtMs()).toBeGreaterThan(heard)
  await insertOrganization(database.pool)
  await expect.poll(() => wakes).toBe(2)
  await listener.close()
  await proxy.close()
})

test('closing ends it at once, also while the server is away', async () => {
  const proxy = await startProxy(Number(new URL(database.url).port))
  proxy.swallow()
  const events: string[] = []
  const listener = startListener(through(proxy.port), {
    timeoutMs: 60_000,
    onWake: () => void events.push('wake'),
    onConnected: () => void events.push('connected'),
    onError: () => void events.push('error'),
  })
  await expect.poll(() => proxy.connections).toBe(1)
  await listener.close()
  expect(events).toEqual([])
  await proxy.close()
})

test('loading gives up on a server that falls silent', async () => {
  const proxy = await startProxy(Number(new URL(database.url).port))
  for (let i = 0; i < 5; i++) await insertOrganization(database.pool)
  const onBatch = (): void => proxy.swallow()
  await expect(joinFeed(through(proxy.port), { onBatch, stallMs: 150 })).rejects.toThrow(/silent for 150 ms/)
  await proxy.close()
})

test('a standby is refused', async () => {
  await database.pool.query(
    `create or replace function pg_temp_standby() returns boolean language sql as 'select true'`,
  )
  const { rows } = await database.pool.query<{ text: string }>(
    `select replace(pg_get_functiondef('open_change_log'::regproc), 'pg_is_in_recovery()', 'pg_temp_standby()') as text`,
  )
  await database.pool.query(rows[0]?.text ?? '')
  await expect(joinFeed(database.validatorUrl, { onBatch: () => undefined })).rejects.toThrow(/standby/)
})
