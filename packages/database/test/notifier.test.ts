/** Tests which changes notify in their transaction, and which are notified after the commit. */

import { setTimeout as sleep } from 'node:timers/promises'

import { createTestDatabase, insertLicense, insertOrganization, type TestDatabase } from '@keyward/testkit'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'

import { claimSlots, createPool, type Database, Notifier, releaseSlots, uuidToBytes } from '../src/index.ts'
import { createDatabase } from '../src/kysely.ts'

let database: TestDatabase
let listener: pg.Client
/** The times at which notifications arrived. */
const arrivedMs: number[] = []
const notify = vi.fn<() => void>()

beforeAll(async () => {
  database = await createTestDatabase()
  listener = new pg.Client(database.url)
  await listener.connect()
  await listener.query('listen keyward_changes')
  listener.on('notification', () => arrivedMs.push(performance.now()))
})
beforeEach(async () => {
  await listener.query('select')
  arrivedMs.length = 0
  notify.mockClear()
})
afterAll(async () => {
  await listener.end()
  await database.drop()
})

/** Returns the number of notifications that have arrived. Postgres sends them before the response to a later statement. */
async function notifications(): Promise<number> {
  await listener.query('select')
  return arrivedMs.length
}

const insertOne = (db: Kysely<Database>) =>
  sql`insert into organizations (id, name, plan) values (gen_random_uuid(), 'Acme', 'FREE')`.execute(db)

test('a change outside a pool that defers notifications notifies in its transaction', async () => {
  await insertOrganization(database.pool)
  expect(await notifications()).toBe(1)
})

test('a transaction that has logged a change is notified after its commit, and does not notify itself', async () => {
  const pool = createPool(database.url, { name: 'defers', max: 1, notify })
  const db = createDatabase(pool)
  await db.transaction().execute(async (trx) => {
    await insertOne(trx)
    expect(notify).not.toHaveBeenCalled()
  })
  expect(notify).toHaveBeenCalledTimes(1)
  expect(await notifications()).toBe(0)
  // The setting ends with the transaction.
  await insertOrganization(pool)
  expect(await notifications()).toBe(1)
  await pool.end()
})

test('a transaction that has logged no change is not notified', async () => {
  const db = createDatabase(createPool(database.url, { name: 'defers', max: 1, notify }))
  await db.transaction().execute((trx) => sql`select 1`.execute(trx))
  await db.transaction().execute(async (trx) => {
    await sql`savepoint before`.execute(trx)
    await insertOne(trx)
    await sql`rollback to savepoint before`.execute(trx)
  })
  const failing = db.transaction().execute(async (trx) => {
    await insertOne(trx)
    throw new Error('fails')
  })
  await expect(failing).rejects.toThrow('fails')
  expect(notify).not.toHaveBeenCalled()
  expect(await notifications()).toBe(0)
  await db.destroy()
})

test('a claim that starts a term, and a release, defer their notifications', async () => {
  const { pool } = database
  const organizationId = await insertOrganization(pool)
  const license = await insertLicense(pool, { organizationId, maxMachines: 1, durationDays: 30 })
  const machine = { licenseId: uuidToBytes(license.id), machineId: Buffer.from('m'), hostname: null }
  await notifications()
  arrivedMs.length = 0
  expect((await claimSlots(pool, [machine], { notify })).map(({ outcome }) => outcome)).toEqual(['granted'])
  expect(notify).toHaveBeenCalledTimes(1)
  expect((await claimSlots(pool, [machine], { notify })).map(({ outcome }) => outcome)).toEqual(['known'])
  expect(notify).toHaveBeenCalledTimes(1)
  expect((await releaseSlots(pool, [machine], { notify })).map(({ outcome }) => outcome)).toEqual(['released'])
  expect(notify).toHaveBeenCalledTimes(2)
  expect(await notifications()).toBe(0)
})

test('a statement of an earlier version notifies in its transaction', async () => {
  const { pool } = database
  const license = await insertLicense(pool, { organizationId: await insertOrganization(pool), maxMachines: 1 })
  await claimSlots(pool, [{ licenseId: uuidToBytes(license.id), machineId: Buffer.from('m'), hostname: null }])
  await notifications()
  arrivedMs.length = 0
  await pool.query(`select outcome from release_slots(array[$1::uuid], array['m'::bytea])`, [license.id])
  expect(await notifications()).toBe(1)
})

test('a notifier sends one notification for the requests of 5 ms, and one after the last request', async () => {
  const notifier = new Notifier(database.url, 'notifier', () => undefined)
  notifier.notify()
  await expect.poll(notifications).toBe(1)
  const startedMs = performance.now()
  let lastMs = 0
  for (let request = 0; request < 50; request++) {
    notifier.notify()
    lastMs = performance.now()
    await sleep(1)
  }
  await notifier.close()
  expect(await notifications()).toBeLessThanOrEqual(3 + (performance.now() - startedMs) / 5)
  expect(await notifications()).toBeGreaterThan(2)
  expect(arrivedMs.at(-1)).toBeGreaterThan(lastMs)
})

test('a notification that fails is reported, and the next one is sent', async () => {
  const onError = vi.fn<(error: unknown) => void>()
  const notifier = new Notifier(database.url, 'notifier', onError)
  notifier.notify()
  await expect.poll(notifications).toBe(1)
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'notifier'`,
  )
  await expect.poll(() => onError.mock.calls.length).toBeGreaterThan(0)
  notifier.notify()
  await expect.poll(notifications).toBe(2)
  await notifier.close()
})
