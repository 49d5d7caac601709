/** Tests that a worker of a queue neither holds rows nor pauses when rows cannot be attempted. */

import { createDatabase } from '@keyward/database/kysely'
import { createLogger } from '@keyward/runtime'
import { createTestDatabase, insertOrganization, type TestDatabase } from '@keyward/testkit'
import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

import type { Db } from '../../src/context.ts'
import { type Allowance, claiming, findDueLanes, type Queue } from '../../src/queue/queue.ts'
import { type Claim, type Job, QueueWorker } from '../../src/queue/worker.ts'

const MAILS: Queue = { table: 'mails', lane: 'organization_id' }
let database: TestDatabase
let pool: pg.Pool
let db: Db

beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.managementUrl })
  db = createDatabase(pool)
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

const write = async (ids: readonly string[]) => {
  await sql`update mails set status = 'SUCCEEDED', next_attempt_at = null, worker = null where id = any(${ids}::uuid[])`.execute(
    db,
  )
}

/** Inserts rows, and starts a worker that claims at most two of them at a time. `handle` receives the claimed rows. */
async function start(rows: number, handle: (claimed: Job[]) => Promise<Claim<Job>>) {
  const organizationId = await insertOrganization(database.pool)
  await database.pool.query(
    `insert into mails (id, organization_id, template, license_ids) select new_id(), $1, 'key', '{}' from generate_series(1, $2::integer)`,
    [organizationId, rows],
  )
  const claim = async (worker: string, allowances: readonly Allowance[]) => {
    const claimed = await sql<Job>`
      with ${claiming(MAILS, worker, allowances)} select id, organization_id, organization_id as lane from claimed`.execute(
      db,
    )
    return handle(claimed.rows)
  }
  const worker = new QueueWorker(db, createLogger('test', 'silent'), {
    queue: MAILS,
    claimed: { lane: 2, organization: 2, inAll: 20, failing: 0 },
    running: { lane: 2, organization: 2 },
    failure: 'expected in this test',
    setDue: () => undefined,
    findDue: () => findDueLanes(db, MAILS, sql`w.lane as organization_id, true as enabled, false as is_failing`, sql``),
    claim,
    attempt: ({ id }) => Promise.resolve({ id, isFailing: false }),
    write: (_worker, outcomes) => write(outcomes.map(({ id }) => id)),
  })
  const left = async () => {
    const { rowCount } = await database.pool.query(
      `select from mails where organization_id = $1 and status = 'PENDING'`,
      [organizationId],
    )
    return rowCount
  }
  onTestFinished(() => worker.close())
  return left
}

test('releases the rows of a failed claim before the next one', async () => {
  let isFirst = true
  const left = await start(1, (jobs) => {
    if (jobs.length === 0 || !isFirst) return Promise.resolve({ jobs, ended: [], later: [] })
    isFirst = false
    return Promise.reject(new Error('The connection was closed.'))
  })
  await expect.poll(left, { timeout: 5_000 }).toBe(0)
  expect(isFirst).toBe(false)
})

test('claims the next rows at once after rows that cannot be attempted', async () => {
  const left = await start(80, async (claimed) => {
    await write(claimed.map(({ id }) => id))
    return { jobs: [], ended: claimed, later: [] }
  })
  // With a pause of 250 ms after each claim, the 40 claims would take 10 seconds.
  await expect.poll(left, { timeout: 6_000 }).toBe(0)
})
