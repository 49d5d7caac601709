/** Tests pools while a synchronous standby is missing: the limit on sessions, canceled waits, and the recovery. */

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { type RunningPostgres, startPostgres } from '@keyward/embedded-postgres'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { createPool, Notifier, sqlState } from '../src/index.ts'
import { createDatabase } from '../src/kysely.ts'
import { migrate } from '../src/migrate.ts'

const NAME = 'pool under test'
const TIMEOUT_MS = 300

// These tests need a server whose commits wait for a standby that does not exist.
let folder: string
let postgres: RunningPostgres
/** A connection whose commits do not wait for the standby. */
let observer: pg.Client

const setStandbys = async (names: string) => {
  await observer.query(`alter system set synchronous_standby_names = '${names}'`)
  await observer.query('select pg_reload_conf()')
  await expect
    .poll(async () => (await observer.query('show synchronous_standby_names')).rows)
    .toEqual([{ synchronous_standby_names: names }])
}
const waiting = async (): Promise<number[]> => {
  const { rows } = await observer.query<{ pid: number }>(
    `select pid from pg_stat_activity where application_name = $1 and wait_event = 'SyncRep'`,
    [NAME],
  )
  return rows.map(({ pid }) => pid)
}
const open = (max: number, queryTimeoutMs = TIMEOUT_MS) => createPool(postgres.url, { name: NAME, max, queryTimeoutMs })
const failureOf = async (work: Promise<unknown>): Promise<unknown> => {
  try {
    return await work
  } catch (error) {
    return error
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keyward-synchronous-'))
  postgres = await startPostgres({ dataFolder: join(folder, 'data'), settings: { fsync: 'off' } })
  observer = new pg.Client({ connectionString: postgres.url })
  await observer.connect()
  await observer.query('set synchronous_commit = local')
  await observer.query('create table counted (n integer)')
  await migrate(postgres.url)
})
beforeEach(async () => {
  await observer.query('truncate counted')
  await setStandbys('nobody')
})
afterAll(async () => {
  await observer.end()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

test('a pool occupies at most `max` sessions, and works again when commits no longer wait for a standby', async () => {
  const pool = open(2)
  for (let round = 0; round < 3; round++)
    await Promise.all(Array.from({ length: 4 }, () => failureOf(pool.query('insert into counted values (1)'))))
  expect(await waiting()).toHaveLength(2)
  await expect(pool.query('select 1')).rejects.toThrow(/2 sessions of this pool still wait/)
  await setStandbys('')
  await expect.poll(() => failureOf(pool.query('insert into counted values (2)'))).not.toBeInstanceOf(Error)
  const { rows } = await observer.query('select n, count(*)::integer as count from counted group by n order by n')
  expect(rows).toEqual([
    { n: 1, count: 2 },
    { n: 2, count: 1 },
  ])
  await pool.end()
})

test('rejects a commit whose wait was canceled, and accepts the next one', async () => {
  const pool = open(2, 20_000)
  const statement = failureOf(pool.query('insert into counted values (1)'))
  const transaction = failureOf(
    createDatabase(pool)
      .transaction()
      .execute((db) => sql`insert into counted values (2)`.execute(db)),
  )
  await expect.poll(async () => (await waiting()).length).toBe(2)
  for (const pid of await waiting()) await observer.query('select pg_cancel_backend($1)', [pid])
  const errors = await Promise.all([statement, transaction])
  expect(errors.map(sqlState)).toEqual(['57014', '57014'])
  expect(String(errors[0])).toMatch(/a failover may lose the commit/)
  await setStandbys('')
  await expect(pool.query('insert into counted values (3)')).resolves.toMatchObject({ rowCount: 1 })
  await pool.end()
})

test('transactions that log changes wait for the standby at the same time, and the notifier does not wait', async () => {
  const db = createDatabase(
    createPool(postgres.url, { name: NAME, max: 4, queryTimeoutMs: 20_000, notify: () => undefined }),
  )
  const changes = Array.from({ length: 4 }, (_, n) =>
    db
      .transaction()
      .execute((trx) =>
        sql`insert into organizations (id, name, plan) values (gen_random_uuid(), ${`n${n}`}, 'FREE')`.execute(trx),
      ),
  )
  // If they notified, the first one would hold the lock that the others need before they wait for the standby.
  await expect.poll(async () => (await waiting()).length).toBe(4)
  const onError = vi.fn<(error: unknown) => void>()
  const listener = new pg.Client(postgres.url)
  await listener.connect()
  await listener.query('listen keyward_changes')
  const notified = once(listener, 'notification')
  const notifier = new Notifier(postgres.url, 'notifier', onError)
  notifier.notify()
  await notified
  await notifier.close()
  await listener.end()
  expect(onError).not.toHaveBeenCalled()
  expect(await waiting()).toHaveLength(4)
  await setStandbys('')
  await Promise.all(changes)
  await db.destroy()
})

test('writes of rate limits do not wait for the standby', async () => {
  const pool = open(1)
  // The first reader after a migration may prune pages of the catalogs. A transaction that prunes writes to the log and waits.
  await observer.query('vacuum')
  const counted = pool.query(`insert into rate_limits (key, points, expire) values ('a', 1, 0)`)
  await expect(counted).resolves.toMatchObject({ rowCount: 1 })
  await pool.end()
})

test('ends a transaction at its first timeout, and does not wait for the rollback', async () => {
  const pool = open(1, 1_500)
  const transaction = createDatabase(pool)
    .transaction()
    .execute((db) => sql`select pg_sleep(60)`.execute(db))
  await expect(transaction).rejects.toThrow('Connection terminated')
  await pool.end()
})
