/**
 * Measures the effect of an hour of ordinary traffic over 10,000 licenses on Postgres: rows, bytes on disk, and statements a second. The
 * traffic is sent over HTTP to a validator in real time, and Postgres has durable settings.
 */

import { createPool } from '@keyward/database'
import { insertApiKey, insertCustomer, insertOrganization, insertProduct, insertRule } from '@keyward/testkit'
import type pg from 'pg'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { planCores } from '../harness/cores.ts'
import { type Difference, difference, readFigures } from '../harness/postgres-statistics.ts'
import { startKeyward } from '../harness/servers.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { formatCount } from '../load/print.ts'
import {
  CHECKS_PER_SECOND,
  FULL,
  keyOf,
  LICENSES,
  machineOf,
  MACHINES_PER_LICENSE,
  sendTraffic,
  type Sent,
} from '../load/soak-traffic.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/soak-hour.ts [options]

  --minutes N       length of the run (default 60)
  --help

Writes bench/results/soak-hour.json.`

const SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'top',
  max_wal_size: '4GB',
}

await runMain('soak-hour', async () => {
  const options = numbersFrom(HELP, { minutes: 60 })
  if (options !== null) await withPostgres((url) => soak(url, options.minutes), SETTINGS)
})

async function soak(url: string, minutes: number): Promise<void> {
  const pool = createPool(url, { name: 'soak', max: 2, statementTimeoutMs: 0 })
  try {
    await pool.query('create extension pg_stat_statements')
    const { secret } = await insertVendor(pool)
    await pool.query('vacuum analyze')
    const validator = await startKeyward(url, { ...planCores(), pinned: false })
    await pool.query('checkpoint')
    const before = await readFigures(pool)
    const sent = await sendTraffic(validator.port, secret, minutes * 60_000)
    await validator.stop()
    report(minutes, sent, difference(before, await readFigures(pool)))
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
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, key, 'PERPETUAL', max
     from unnest($4::text[], $5::int[]) as l (key, max)`,
    [
      organizationId,
      productId,
      customerId,
      numbers.map(keyOf),
      numbers.map((n) => (n < FULL ? MACHINES_PER_LICENSE : MACHINES_PER_LICENSE + 3)),
    ],
  )
  for (let i = 0; i < MACHINES_PER_LICENSE; i++)
    await pool.query(
      `insert into machines (id, license_id, machine_id) select gen_random_uuid(), l.id, convert_to(machine, 'UTF8')
       from unnest($1::text[], $2::text[]) as m (key, machine) join licenses l on l.key = m.key`,
      [numbers.map(keyOf), numbers.map((n) => machineOf(n, i))],
    )
  return insertApiKey(pool, { organizationId })
}

function report(minutes: number, sent: Sent, grown: Difference): void {
  const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`
  const bytes = Object.values(grown.tables).reduce((sum, table) => sum + table.bytes, 0)
  const path = writeResult('soak-hour', {
    minutes,
    licenses: LICENSES,
    checksPerSecond: CHECKS_PER_SECOND,
    sent,
    grown,
  })
  console.log(`${formatCount(sent.checks)} checks in ${minutes} minutes, ${sent.failed} without a response`)
  for (const [code, count] of Object.entries(sent.codes)) console.log(`  ${code.padEnd(22)}${formatCount(count)}`)
  for (const [name, table] of Object.entries(grown.tables))
    console.log(
      `${name.padEnd(24)}${formatCount(table.rows).padStart(10)} more rows, ${formatCount(table.inserted)} inserted, ` +
        `${formatCount(table.updated)} updated, ${mebibytes(table.bytes)}`,
    )
  for (const [name, rate] of Object.entries(grown.statementsPerSecond))
    console.log(`${name.padEnd(34)}${rate.toFixed(2).padStart(8)} a second`)
  console.log(`transactions ${grown.transactionsPerSecond.toFixed(2)} a second`)
  console.log(`on disk ${mebibytes(bytes)}, write-ahead log ${mebibytes(grown.walBytes)}\n${path}`)
}
