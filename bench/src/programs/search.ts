/**
 * Measures the search and the filtered lists of the management API in an organization with many licenses, each with a machine, and as
 * many customers. Another organization has a tenth of them.
 */

import { uuidv7 } from '@keyward/database'
import pg from 'pg'
import { z } from 'zod'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { caller, OPERATOR_TOKEN, startManagement } from '../harness/management-api.ts'
import { percentiles } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/search.ts [options]

  --licenses N      licenses of the searched organization (default 1000000)
  --requests N      requests of each kind (default 30)
  --help

Writes bench/results/search.json.`

/** Each path has random numbers in place of N. */
const PATHS = [
  'search?q=KEY-N',
  'search?q=customerN',
  'search?q=customerN@example.com',
  'search?q=machine-N',
  'search?q=HOST-N',
  'search?q=nothing%20like%20it',
  'machines?machineId=machine-N',
  'machines?hostname=host-N',
  'licenses?email=customerN@example.com',
  'licenses?sort=expiresAt',
  'licenses?expiresBefore=2030-01-01T00:00:00Z&status=active',
  'licenses?expiresAfter=2090-01-01T00:00:00Z',
]

const created = z.object({ id: z.string(), managementToken: z.string() })

await runMain('search', async () => {
  const sizes = numbersFrom(HELP, { licenses: 1_000_000, requests: 30 })
  if (sizes === null) return
  const settings = { shared_buffers: '1GB', max_wal_size: '8GB', fsync: 'off' }
  await withPostgres(async (url) => {
    const data = await measure(url, sizes)
    console.log(JSON.stringify(data, null, 2))
    console.log(writeResult('search', data))
  }, settings)
})

async function measure(url: string, { licenses, requests }: { licenses: number; requests: number }): Promise<object> {
  const management = await startManagement(url)
  try {
    const operator = caller(management.port, OPERATOR_TOKEN)
    const create = async (name: string) =>
      (await operator('POST', 'organizations', created, { name, plan: 'STANDARD' })).value
    const [other, searched] = [await create('Other'), await create('Searched')]
    await fill(url, other.id, Math.ceil(licenses / 10))
    await fill(url, searched.id, licenses)
    const call = caller(management.port, searched.managementToken)
    const times: Record<string, object> = {}
    for (const path of PATHS) {
      const all: number[] = []
      for (let i = 0; i < requests; i++) {
        const n = Math.floor(Math.random() * licenses)
        all.push((await call('GET', path.replaceAll('N', String(n)), z.unknown())).ms)
      }
      times[path] = percentiles(all)
    }
    return { licenses, requests, times }
  } finally {
    await management.stop()
  }
}

/** Inserts rows without triggers, which would write a log entry for each row. */
async function fill(url: string, organizationId: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const productId = uuidv7()
    await client.query(`insert into products (id, organization_id, name) values ($1, $2, 'App')`, [
      productId,
      organizationId,
    ])
    await client.query('set session_replication_role = replica')
    await client.query(
      `insert into customers (id, organization_id, email, name)
       select new_id(), $1, 'customer' || i || '@example.com', 'Customer ' || i from generate_series(1, $2::integer) i`,
      [organizationId, count],
    )
    await client.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines, expires_at)
       select new_id(), $1, $2, c.id, 'KEY-' || c.i, 'SUBSCRIPTION', 5, now() + make_interval(hours => c.i::integer % 50000)
       from (select id, row_number() over () as i from customers where organization_id = $1) c`,
      [organizationId, productId],
    )
    await client.query(
      'insert into license_slots (license_id, used) select id, 1 from licenses where organization_id = $1',
      [organizationId],
    )
    await client.query(
      `insert into machines (id, license_id, organization_id, machine_id, hostname)
       select new_id(), id, $1, convert_to(replace(key, 'KEY', 'machine'), 'UTF8'), replace(key, 'KEY', 'Host')
       from licenses where organization_id = $1`,
      [organizationId],
    )
    await client.query('analyze')
  } finally {
    await client.end()
  }
}
