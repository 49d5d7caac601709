import { randomBytes } from 'node:crypto'

import {
  createTestDatabase,
  insertOrganization,
  onServer,
  SERVER_VARIABLE,
  startProxy,
  type TestDatabase,
  withDatabase,
} from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { loadFeed } from '../../src/index.ts'

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

test('loadFeed rejects when the server sends nothing', async () => {
  const proxy = await startProxy(Number(new URL(database.url).port))
  for (let i = 0; i < 5; i++) await insertOrganization(database.pool)
  const onBatch = (): void => proxy.swallow()
  await expect(loadFeed(through(proxy.port), { onBatch, stallMs: 150 })).rejects.toThrow(/silent for 150 ms/)
  await proxy.close()
})

test('loadFeed rejects when the connection breaks', async () => {
  const proxy = await startProxy(Number(new URL(database.url).port))
  await expect(loadFeed(through(proxy.port), { onBatch: proxy.cut })).rejects.toThrow(/terminated|reset/i)
  await proxy.close()
})

test('loadFeed rejects a database that has not been migrated', async () => {
  const server = process.env[SERVER_VARIABLE] ?? ''
  const name = `keyward_empty_${randomBytes(4).toString('hex')}`
  await onServer(server, (client) => client.query(`create database ${name}`))
  const joined = loadFeed(withDatabase(server, name), { onBatch: () => undefined })
  await expect(joined).rejects.toThrow('The database has not been migrated yet')
  await onServer(server, (client) => client.query(`drop database ${name} with (force)`))
})

test('loadFeed rejects a standby', async () => {
  await database.pool.query(
    `create or replace function pg_temp_standby() returns boolean language sql as 'select true'`,
  )
  const { rows } = await database.pool.query<{ text: string }>(
    `select replace(pg_get_functiondef('open_change_log_with'::regproc), 'pg_is_in_recovery()', 'pg_temp_standby()') as text`,
  )
  await database.pool.query(rows[0]?.text ?? '')
  await expect(loadFeed(database.validatorUrl, { onBatch: () => undefined })).rejects.toThrow(/standby/)
})
