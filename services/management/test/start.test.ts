/** Tests the start and the stop of the service: required migrations, dropped partitions, and draining. */

import { Agent, get } from 'node:http'

import { createTestDatabase, type TestDatabase } from '@keyward/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { environment } from '../src/config.ts'
import { startManagement } from '../src/server.ts'
import { masterKey, operatorToken } from './support/harness.ts'

let database: TestDatabase

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(() => database.drop())

const start = (env: Record<string, string> = {}) =>
  startManagement(
    environment.parse({
      DATABASE_URL: database.managementUrl,
      MANAGEMENT_PORT: '0',
      MANAGEMENT_ADMIN_PORT: '0',
      OPERATOR_TOKEN: operatorToken,
      MASTER_KEY: masterKey,
      ACTIVITY_RETENTION_DAYS: '30',
      ANALYTICS_RETENTION_DAYS: '60',
      LOG_LEVEL: 'fatal',
      ...env,
    }),
  )

test('the start fails with an error that names the missing migration', async () => {
  const { rows } = await database.pool.query<{ name: string }>(
    'delete from migrations where name = (select max(name) from migrations) returning name',
  )
  const sentence = `The database has not been migrated yet; ${rows[0]?.name} is missing. Run "npm run migrate".`
  await expect(start()).rejects.toThrow(sentence)
  await database.pool.query('drop table migrations')
  await expect(start()).rejects.toThrow(
    /^The database has not been migrated yet; (?:0001_baseline is missing|\d+ migrations are missing from 0001_baseline on)\./,
  )
})

test.skipIf(process.platform !== 'linux')(
  'the admin port is open only on MANAGEMENT_ADMIN_HOST (needs 127.0.0.2)',
  async () => {
    const statuses = async (): Promise<string> => {
      const management = await start({ MANAGEMENT_ADMIN_HOST: '127.0.0.2' })
      const statusOf = (host: string): Promise<number> =>
        fetch(`http://${host}:${management.adminPort}/livez`).then(
          ({ status }) => status,
          () => 0,
        )
      const found = [await statusOf('127.0.0.2'), await statusOf('127.0.0.1')]
      await management.close()
      return found.join(', ')
    }
    // Another program may use the same port on 127.0.0.1, so the test tries several ports.
    await expect.poll(statuses).toBe('200, 0')
  },
)

test('drops partitions past their retention and keeps younger ones', async () => {
  const partitions = async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select inhrelid::regclass::text as name from pg_inherits
       where inhparent in ('activity'::regclass, 'check_counts'::regclass) order by 1`,
    )
    return rows.map(({ name }) => name)
  }
  const before = await partitions()
  const make = (table: string, daysAgo: number) =>
    database.pool.query(`select ensure_partition($1, now() - make_interval(days => $2))`, [table, daysAgo])
  await make('activity', 10)
  await make('check_counts', 30)
  const young = await partitions()
  await make('activity', 50)
  await make('check_counts', 120)
  expect((await partitions()).length).toBe(young.length + 2)
  const management = await start()
  await expect.poll(partitions, { timeout: 10_000 }).toEqual(young)
  await management.close()
  expect(young.length).toBeGreaterThan(before.length)
})

test('a stopping service still responds while it reports not ready, and closes each connection after its response', async () => {
  const management = await start()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const send = () =>
    new Promise<{ status: number | undefined; connection: string | undefined }>((resolve, reject) => {
      const request = get(`http://127.0.0.1:${management.port}/api/v1/products`, { agent }, (response) => {
        response.resume().on('end', () => {
          resolve({ status: response.statusCode, connection: response.headers.connection })
        })
      })
      request.on('error', reject)
    })
  expect(await send()).toEqual({ status: 401, connection: 'keep-alive' })
  const stopped = management.close()
  // The first request uses the idle connection, and the second request opens a new one.
  expect(await send()).toEqual({ status: 401, connection: 'close' })
  expect(await send()).toEqual({ status: 401, connection: 'close' })
  const ready = await fetch(`http://127.0.0.1:${management.adminPort}/readyz`)
  expect(ready.status).toBe(503)
  await stopped
  await expect(send()).rejects.toThrow('ECONNREFUSED')
})
