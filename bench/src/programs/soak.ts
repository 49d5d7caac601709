/**
 * Measures the effect of an hour of ordinary traffic over 10,000 licenses on Postgres: rows, bytes on disk, and statements. The
 * traffic is sent over HTTP to a validator in real time, and Postgres has durable settings.
 */

import { createPool } from '@keyward/database'
import { insertApiKey, insertCustomer, insertOrganization, insertProduct, insertRule } from '@keyward/testkit'
import type pg from 'pg'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { planCores } from '../harness/cores.ts'
import { difference, readFigures } from '../harness/postgres-statistics.ts'
import { writeResult } from '../harness/results.ts'
import { startKeyward } from '../harness/servers.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { runLoad } from '../load/generator.ts'
import { formatCount, formatOutcome } from '../load/print.ts'
import {
  FULL,
  keyOf,
  LICENSES,
  machineOf,
  MACHINES_PER_LICENSE,
  REQUESTS_PER_SECOND,
  soakTraffic,
} from '../load/soak-traffic.ts'

const HELP = `node bench/src/programs/soak.ts [options]

  --minutes N       length of the run (default 60)
  --help

Writes bench/results/soak.json.`

const SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'top',
  max_wal_size: '4GB',
}
const CONNECTIONS = 32

await runMain('soak', async () => {
  const options = numbersFrom(HELP, { minutes: 60 })
  if (options !== null) await withPostgres((url) => soak(url, options.minutes), SETTINGS)
})

async function soak(databaseUrl: string, minutes: number): Promise<void> {
  const pool = createPool(databaseUrl, { name: 'soak', max: 2, statementTimeoutMs: 0 })
  try {
    await pool.query('create extension pg_stat_statements')
    const { secret } = await insertVendor(pool)
    await pool.query('vacuum analyze')
    const validator = await startKeyward(databaseUrl, { ...planCores(), pinned: false })
    await pool.query('checkpoint')
    const before = await readFigures(pool)
    const { url } = validator
    const load = { url, nextRequest: soakTraffic(url, secret), ratePerSecond: REQUESTS_PER_SECOND }
    const sent = await runLoad({ ...load, connections: CONNECTIONS, durationMs: minutes * 60_000 })
    await validator.stop()
    const grown = difference(before, await readFigures(pool))
    console.log(formatOutcome(sent))
    for (const [name, growth] of Object.entries(grown))
      console.log(
        `${name.padEnd(56)}${formatCount(growth).padStart(14)}  ${(growth / minutes / 60).toFixed(2)} a second`,
      )
    console.log(writeResult('soak', { minutes, licenses: LICENSES, sent, grown }))
  } finally {
    await pool.end()
  }
}

/** Inserts one vendor. The vendor's machines already hold their slots, as in an installation that has been used for months. */
async function insertVendor(pool: pg.Pool): Promise<{ secret: string }> {
  const organizationId = await insertOrganization(pool)
  const productId = await insertProduct(pool, { organizationId })
  const customerId = await insertCustomer(pool, { organizationId })
  await insertRule(pool, { organizationId, type: 'HWID', value: 'soak-blacklisted' })
  await insertRule(pool, { organizationId, kind: 'EXCLUSION', type: 'HWID', value: 'soak-excluded' })
  const numbers = Array.from({ length: LICENSES }, (_, n) => n)
  const limits = numbers.map((n) => (n < FULL ? MACHINES_PER_LICENSE : MACHINES_PER_LICENSE + 3))
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, key, 'PERPETUAL', max
     from unnest($4::text[], $5::int[]) as l (key, max)`,
    [organizationId, productId, customerId, numbers.map(keyOf), limits],
  )
  for (let i = 0; i < MACHINES_PER_LICENSE; i++)
    await pool.query(
      `insert into machines (id, license_id, machine_id) select gen_random_uuid(), l.id, convert_to(machine, 'UTF8')
       from unnest($1::text[], $2::text[]) as m (key, machine) join licenses l on l.key = m.key`,
      [numbers.map(keyOf), numbers.map((n) => machineOf(n, i))],
    )
  return insertApiKey(pool, { organizationId })
}
