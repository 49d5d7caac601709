/**
 * Measures the inputs of the simulations on this machine. The work of Postgres for a read of the change log and for a claim statement is
 * the CPU time of the backend, which excludes other load. Also measures commits with and without NOTIFY, and the size and load time of an
 * index. Runs only on Linux, because it reads `/proc`.
 */

import { readFileSync } from 'node:fs'

import {
  type Claim,
  claimSlots,
  createPool,
  type FeedChange,
  loadFeed,
  openChangeLog,
  readFeed,
  uuidToBytes,
  uuidv7Bytes,
} from '@keyward/database'
import { type Change, createIndex } from '@keyward/engine'
import { insertCustomer, insertOrganization, insertProduct } from '@keyward/testkit'
import type pg from 'pg'

export interface Measured {
  /** The core time of Postgres for a read of the change log that returns one change. */
  readMs: number
  /** The core time of Postgres for a claim statement, and the additional time for each claim in it. */
  statementMs: number
  claimMs: number
  /** The number of commits a second with and without NOTIFY, over eight connections. Each commit changes one row. */
  notifyingCommits: number
  silentCommits: number
  /** The bytes that a license with three machines takes in the index. */
  bytesPerLicense: number
  /** The number of rows (licenses and machines) that one thread loads from Postgres into an index per second of its CPU time. */
  loadRowsPerSecond: number
}

const TICK_MS = 10

export async function measure(url: string, licenses: number): Promise<Measured> {
  const pool = createPool(url, { name: 'scaling', max: 8, statementTimeoutMs: 300_000 })
  try {
    const ids = await insertLicenses(pool, licenses)
    const load = await measureLoad(url, pool, licenses)
    const readMs = await measureRead(pool, ids, 2_000)
    const single = await measureClaims(pool, ids, 1, 1_500)
    const many = await measureClaims(pool, ids, 100, 100)
    const claimMs = (many - single) / 99
    await pool.query('listen keyward_changes')
    const notifyingCommits = await measureCommits(pool, ids, 'update licenses set max_machines = $2 where id = $1')
    const silentCommits = await measureCommits(
      pool,
      ids,
      'update licenses set irrelevant_to_verdicts = $2 where id = $1',
    )
    return { readMs, claimMs, statementMs: single - claimMs, notifyingCommits, silentCommits, ...load }
  } finally {
    await pool.end()
  }
}

async function insertLicenses(pool: pg.Pool, count: number): Promise<string[]> {
  const organizationId = await insertOrganization(pool)
  const productId = await insertProduct(pool, { organizationId })
  const customerId = await insertCustomer(pool, { organizationId })
  await pool.query('alter table licenses add column irrelevant_to_verdicts integer')
  const { rows } = await pool.query<{ id: string }>(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, 'KEY-' || lpad(n::text, 15, '0'), 'PERPETUAL', 1000000
     from generate_series(1, $4::integer) n returning id`,
    [organizationId, productId, customerId, count],
  )
  await pool.query(`insert into machines (id, license_id, machine_id)
    select gen_random_uuid(), id, convert_to('machine-' || key || m, 'UTF8') from licenses, generate_series(1, 3) m`)
  await pool.query('vacuum analyze')
  return rows.map(({ id }) => id)
}

async function measureLoad(
  url: string,
  pool: pg.Pool,
  licenses: number,
): Promise<Pick<Measured, 'bytesPerLicense' | 'loadRowsPerSecond'>> {
  const index = createIndex({ reserve: 'large' })
  const client = await pool.connect()
  await openChangeLog(client)
  client.release()
  const before = process.cpuUsage()
  let rows = 0
  await loadFeed(url, {
    onBatch: (changes) => {
      rows += changes.length
      index.apply(changes.flatMap(indexChangesOf))
    },
  })
  const { user, system } = process.cpuUsage(before)
  return { bytesPerLicense: index.stats().usedBytes / licenses, loadRowsPerSecond: (rows / (user + system)) * 1e6 }
}

/**
 * Converts a change of the feed for the index. Licenses become active, and rules and signing keys are left out.
 */
function indexChangesOf(change: FeedChange): Change[] {
  if (change.entity === 'rule' || change.entity === 'signingKey') return []
  if (change.entity !== 'license') return [change]
  return [{ ...change, row: change.row && { ...change.row, status: 'active' } }]
}

/** Returns the CPU time that a backend of Postgres has used so far, in milliseconds. */
function backendMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Runs `work` on one connection. Returns the CPU time that its backend used, in milliseconds. */
async function withBackend(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<void>): Promise<number> {
  const client = await pool.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    const pid = rows[0]!.pid
    const before = backendMs(pid)
    await work(client)
    return backendMs(pid) - before
  } finally {
    client.release()
  }
}

async function measureRead(pool: pg.Pool, ids: readonly string[], reads: number): Promise<number> {
  const usedMs = await withBackend(pool, async (client) => {
    let { rows } = await client.query<{ snapshot: string }>('select pg_current_snapshot()::text as snapshot')
    for (let i = 0; i < reads; i++) {
      await pool.query('update licenses set max_machines = max_machines + 1 where id = $1', [ids[i % ids.length]])
      const { snapshot } = await readFeed(client, rows[0]!.snapshot)
      rows = [{ snapshot }]
    }
  })
  return usedMs / reads
}

async function measureClaims(
  pool: pg.Pool,
  ids: readonly string[],
  batch: number,
  statements: number,
): Promise<number> {
  const usedMs = await withBackend(pool, async (client) => {
    for (let i = 0; i < statements; i++) {
      const claims = Array.from({ length: batch }, (_, n): Claim => ({
        licenseId: uuidToBytes(ids[(i * batch + n) % ids.length]!),
        machineId: uuidv7Bytes(),
        hostname: null,
      }))
      await claimSlots(client, claims)
    }
  })
  return usedMs / statements
}

async function measureCommits(pool: pg.Pool, ids: readonly string[], statement: string): Promise<number> {
  const untilMs = performance.now() + 3_000
  let commits = 0
  await Promise.all(
    Array.from({ length: 8 }, async (_, connection) => {
      for (let i = connection; performance.now() < untilMs; i += 8) {
        await pool.query(statement, [ids[i % ids.length], 2_000_000 + i])
        commits++
      }
    }),
  )
  return commits / 3
}
