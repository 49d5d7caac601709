/**
 * Measures the number of machine slots that Postgres grants per second. Rounds with many claims per statement, as the validator sends them,
 * alternate with rounds of one claim per statement. All rounds use the same server and the same connections, with durable commits.
 */

import { type Claim, claimSlots, createPool, uuidv7Bytes } from '@keyward/database'
import type pg from 'pg'

import { insertLicenses } from '../data/licenses.ts'
import { numbersFrom, runMain } from '../harness/command-line.ts'
import { summarize } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { formatCount } from '../load/print.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/claims.ts [options]

  --batch N         claims per statement (default 64)
  --connections N   connections that each send one statement after another (default 4)
  --licenses N      licenses that the claims are spread over (default 2000)
  --rounds N        rounds of each kind, alternating (default 5)
  --seconds N       length of a round (default 3)
  --help

Writes bench/results/claims.json.`

const DEFAULTS = { batch: 64, connections: 4, licenses: 2_000, rounds: 5, seconds: 3 }
type Sizes = typeof DEFAULTS

await runMain('claims', async () => {
  const sizes = numbersFrom(HELP, DEFAULTS)
  if (sizes === null) return
  await withPostgres((url) => compare(url, sizes), { max_wal_size: '4GB' })
})

async function compare(url: string, sizes: Sizes): Promise<void> {
  const pool = createPool(url, { name: 'claims', max: sizes.connections })
  try {
    const licenses = await insertLicenses(pool, sizes.licenses)
    await grantsPerSecond(pool, licenses, { ...sizes, seconds: 1 }, sizes.batch) // warms up
    const single: number[] = []
    const batched: number[] = []
    for (let round = 0; round < sizes.rounds; round++) {
      single.push(await grantsPerSecond(pool, licenses, sizes, 1))
      batched.push(await grantsPerSecond(pool, licenses, sizes, sizes.batch))
    }
    report(sizes, single, batched)
  } finally {
    await pool.end()
  }
}

/** Returns the granted claims a second. Every claim is of a new machine for a license with free slots. */
async function grantsPerSecond(pool: pg.Pool, licenses: Uint8Array[], sizes: Sizes, batch: number): Promise<number> {
  const startedAtMs = performance.now()
  const endsAtMs = startedAtMs + sizes.seconds * 1_000
  let granted = 0
  let next = 0
  const claim = (): Claim => ({
    licenseId: licenses[next++ % licenses.length]!,
    machineId: uuidv7Bytes(),
    hostname: null,
  })
  const send = async (): Promise<void> => {
    while (performance.now() < endsAtMs) {
      let claims = Array.from({ length: batch }, claim)
      for (let patient = false; claims.length > 0; patient = true) {
        const outcomes = await claimSlots(pool, claims, { patient })
        granted += outcomes.filter(({ outcome }) => outcome === 'granted').length
        claims = claims.filter((_, i) => outcomes[i]!.outcome === 'busy')
      }
    }
  }
  await Promise.all(Array.from({ length: sizes.connections }, send))
  return granted / ((performance.now() - startedAtMs) / 1_000)
}

function report(sizes: Sizes, single: number[], batched: number[]): void {
  const median = { single: summarize(single).median, batched: summarize(batched).median }
  const ratio = median.batched / median.single
  const path = writeResult('claims', { sizes, perSecond: { single, batched }, median, ratio })
  console.log(`1 per statement    ${formatCount(median.single)} claims a second`)
  console.log(`${sizes.batch} per statement   ${formatCount(median.batched)} claims a second`)
  console.log(`ratio              ${ratio.toFixed(1)}\n${path}`)
}
