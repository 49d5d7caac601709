// What an hour of ordinary traffic over 10,000 licenses leaves in Postgres: rows, bytes on disk, statements a second. Nothing is
// sped up: the traffic goes over HTTP to a validator in real time, and Postgres keeps its durable settings.
// `node bench/src/programs/soak-hour.ts --help` lists what can be set.
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { createPool } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import { insertApiKey, insertCustomer, insertOrganization, insertProduct, insertRule } from '@keyward/testkit'
import type pg from 'pg'

import { planCores } from '../harness/cores.ts'
import { type Difference, difference, readFigures } from '../harness/postgres-statistics.ts'
import { startKeyward } from '../harness/servers.ts'
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

  --minutes N       how long (default 60); a shorter run says what it measured and nothing more
  --help`

const SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'top',
  max_wal_size: '4GB',
}

await main()

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' }, help: { type: 'boolean' } } })
  if (values.help === true) return console.log(HELP)
  const minutes = Number(values.minutes)
  if (!(minutes > 0 && minutes <= 1_440))
    throw new Error(`--minutes takes a number up to 1440, got "${values.minutes}"`)
  const folder = mkdtempSync(join(tmpdir(), 'keyward-soak-'))
  await chmod(folder, 0o755) // Postgres runs as another user when root runs this
  const postgres = await startPostgres({ dataFolder: join(folder, 'data'), settings: SETTINGS })
  const pool = createPool(postgres.url, { name: 'soak', max: 2, statementTimeoutMs: 0 })
  try {
    await migrate(postgres.url)
    await pool.query('create extension pg_stat_statements')
    const { secret } = await insertVendor(pool)
    await pool.query('vacuum analyze')
    const validator = await startKeyward(postgres.url, { ...planCores(), pinned: false })
    await pool.query('checkpoint')
    const before = await readFigures(pool)
    const sent = await sendTraffic(validator.port, secret, minutes * 60_000)
    await validator.stop()
    const grown = difference(before, await readFigures(pool))
    report(minutes, sent, grown)
  } finally {
    await pool.end()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Machines hold their slots already, so that the run begins as any other hour. */
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
  const number = (n: number): string => Math.round(n).toLocaleString('en-US')
  const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`
  const bytes = Object.values(grown.tables).reduce((sum, table) => sum + table.bytes, 0)
  const path = writeResult('soak-hour', {
    minutes,
    licenses: LICENSES,
    checksPerSecond: CHECKS_PER_SECOND,
    sent,
    grown,
  })
  console.log(`${number(sent.checks)} checks in ${minutes} minutes, ${sent.failed} without an answer`)
  for (const [code, count] of Object.entries(sent.codes)) console.log(`  ${code.padEnd(22)}${number(count)}`)
  for (const [name, table] of Object.entries(grown.tables))
    console.log(
      `${name.padEnd(24)}${number(table.rows).padStart(10)} rows more, ${number(table.inserted)} inserted, ` +
        `${number(table.updated)} updated, ${mebibytes(table.bytes)}`,
    )
  for (const [name, rate] of Object.entries(grown.statementsPerSecond))
    console.log(`${name.padEnd(34)}${rate.toFixed(2).padStart(8)} a second`)
  console.log(`transactions ${grown.transactionsPerSecond.toFixed(2)} a second`)
  console.log(`on disk ${mebibytes(bytes)}, write-ahead log ${mebibytes(grown.walBytes)}\n${path}`)
}
