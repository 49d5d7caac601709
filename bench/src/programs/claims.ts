// Measures how many machine slots a second Postgres grants: many claims in one statement, as the validator sends them,
// against one statement for each claim. Both in turn on one server, durably, over the same connections.
// `node bench/src/programs/claims.ts --help` lists what can be set.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { type Claim, claimSlots, createPool, uuidToBytes, uuidv7, uuidv7Bytes } from '@keyward/database'
import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import type pg from 'pg'

import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/claims.ts [options]

  --batch N         claims in one statement (default 64)
  --connections N   each sends one statement after the other (default 4)
  --licenses N      over which the claims are spread (default 2000)
  --rounds N        of each kind, in turn (default 5)
  --seconds N       a round (default 3)
  --help`

interface Sizes {
  batch: number
  connections: number
  licenses: number
  rounds: number
  seconds: number
}

await main()

async function main(): Promise<void> {
  const sizes = parse(process.argv.slice(2))
  if (sizes === null) return console.log(HELP)
  const folder = mkdtempSync(join(tmpdir(), 'keyward-claims-'))
  const postgres = await startPostgres({ dataFolder: join(folder, 'data'), settings: { max_wal_size: '4GB' } })
  try {
    await migrate(postgres.url)
    const pool = createPool(postgres.url, { name: 'claims', max: sizes.connections })
    const licenses = await insertLicenses(pool, sizes.licenses)
    await measure(pool, licenses, { ...sizes, seconds: 1 }, sizes.batch) // warms up
    const kinds = { single: 1, batched: sizes.batch }
    const perSecond: Record<keyof typeof kinds, number[]> = { single: [], batched: [] }
    for (let round = 0; round < sizes.rounds; round++) {
      perSecond.single.push(await measure(pool, licenses, sizes, kinds.single))
      perSecond.batched.push(await measure(pool, licenses, sizes, kinds.batched))
    }
    await pool.end()
    report(sizes, perSecond.single, perSecond.batched)
  } finally {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Grants a second. Every claim is of a machine that nobody has seen, on a license with slots to spare. */
async function measure(pool: pg.Pool, licenses: Uint8Array[], sizes: Sizes, batch: number): Promise<number> {
  const startedAt = performance.now()
  const endsAt = startedAt + sizes.seconds * 1_000
  let granted = 0
  let next = 0
  const claim = (): Claim => ({
    licenseId: licenses[next++ % licenses.length] ?? new Uint8Array(16),
    machineId: uuidv7Bytes(),
    hostname: null,
  })
  const send = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      let claims = Array.from({ length: batch }, claim)
      for (let patient = false; claims.length > 0; patient = true) {
        const answers = await claimSlots(pool, claims, { patient })
        granted += answers.filter((answer) => answer.outcome === 'granted').length
        claims = claims.filter((_, i) => answers[i]?.outcome === 'busy')
      }
    }
  }
  await Promise.all(Array.from({ length: sizes.connections }, send))
  return granted / ((performance.now() - startedAt) / 1_000)
}

async function insertLicenses(pool: pg.Pool, count: number): Promise<Uint8Array[]> {
  const [organization, product, customer] = [uuidv7(), uuidv7(), uuidv7()]
  await pool.query(`insert into organizations (id, name, plan) values ($1, 'Acme', 'STANDARD')`, [organization])
  await pool.query(`insert into products (id, organization_id, name) values ($1, $2, 'x')`, [product, organization])
  await pool.query(`insert into customers (id, organization_id, email) values ($1, $2, 'x')`, [customer, organization])
  const ids = Array.from({ length: count }, () => uuidv7())
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select id, $2, $3, $4, id::text, 'PERPETUAL', 1000000 from unnest($1::uuid[]) as ids (id)`,
    [ids, organization, product, customer],
  )
  return ids.map(uuidToBytes)
}

function report(sizes: Sizes, single: number[], batched: number[]): void {
  const figures = { single: median(single), batched: median(batched) }
  const ratio = figures.batched / figures.single
  const path = writeResult('claims', { sizes, perSecond: { single, batched }, median: figures, ratio })
  console.log(`one statement each     ${Math.round(figures.single).toLocaleString('en-US')} claims a second`)
  console.log(
    `${sizes.batch} in a statement      ${Math.round(figures.batched).toLocaleString('en-US')} claims a second`,
  )
  console.log(`ratio                  ${ratio.toFixed(1)}\n${path}`)
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function parse(args: string[]): Sizes | null {
  const { values } = parseArgs({
    args,
    options: {
      batch: { type: 'string', default: '64' },
      connections: { type: 'string', default: '4' },
      licenses: { type: 'string', default: '2000' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const [batch, connections, licenses, rounds, seconds] = [
    values.batch,
    values.connections,
    values.licenses,
    values.rounds,
    values.seconds,
  ].map((text) => {
    const number = Number(text)
    if (!Number.isInteger(number) || number < 1)
      throw new Error(`a size is a whole number of at least 1, got "${text}"`)
    return number
  })
  return {
    batch: batch ?? 64,
    connections: connections ?? 4,
    licenses: licenses ?? 2_000,
    rounds: rounds ?? 5,
    seconds: seconds ?? 3,
  }
}
