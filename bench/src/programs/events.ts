/**
 * Measures the cost of events. The first part claims slots with and without the trigger that records new machines as occurrences. The
 * second part compares changes through the management API with those of another checkout, usually of the version without events. Rounds of
 * all kinds alternate. Processor time is compared in addition to durations, because it depends less on other programs on the machine.
 */

import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { type Claim, claimSlots, createPool, uuidv7Bytes } from '@keyward/database'
import pg from 'pg'
import { z } from 'zod'

import { insertLicenses } from '../data/licenses.ts'
import { runToEnd } from '../harness/children.ts'
import { runMain, wholeNumber } from '../harness/command-line.ts'
import { type Call, caller, OPERATOR_TOKEN, startManagement } from '../harness/management-api.ts'
import { summarize } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { cpuMs, postgresCpuMs } from '../harness/usage.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/events.ts [options]

  --rounds N        rounds of each kind, alternating (default 12)
  --claims N        statements in a round, with 64 claims of new machines each (default 50)
  --changes N       licenses in a round; each is created, changed and suspended (default 60)
  --against DIR     a checkout whose changes are compared, with its packages installed
  --help

Writes bench/results/events.json.`

const CLAIMS = 64
const LICENSES = 2_000
const TRIGGER = 'machines_noted_added'
const created = z.object({ id: z.string() })

interface Sizes {
  rounds: number
  claims: number
  changes: number
}

/** The medians of the rounds, in milliseconds. */
interface Cost {
  /** The duration of one statement or change. */
  ms: number
  /** The processor time of Postgres for one statement, or of Postgres and the management process for one change. */
  cpuMs: number
}

await runMain('events', async () => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '12' },
      claims: { type: 'string', default: '50' },
      changes: { type: 'string', default: '60' },
      against: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(HELP)
    return
  }
  const sizes = {
    rounds: wholeNumber('--rounds', values.rounds, 1),
    claims: wholeNumber('--claims', values.claims, 1),
    changes: wholeNumber('--changes', values.changes, 1),
  }
  await withPostgres(
    async (url, pid) => {
      const claims = await measureClaims(url, pid, sizes)
      const changes = values.against === undefined ? null : await measureChanges(url, pid, sizes, values.against)
      const result = { sizes, claims, changes }
      console.log(JSON.stringify(result, null, 2))
      console.log(writeResult('events', result))
    },
    { max_wal_size: '4GB' },
  )
})

/** Runs the kinds in alternating rounds. `run` returns the durations of its statements or changes. */
async function alternate(
  kinds: Readonly<Record<string, () => Promise<number[]>>>,
  rounds: number,
  cpu: () => number,
): Promise<Record<string, Cost>> {
  const samples = new Map(Object.keys(kinds).map((name) => [name, { ms: [] as number[], cpuMs: [] as number[] }]))
  for (let round = -1; round < rounds; round++)
    for (const [name, run] of Object.entries(kinds)) {
      const before = cpu()
      const durations = await run()
      const used = (cpu() - before) / durations.length
      if (round < 0) continue // warms up
      samples.get(name)!.ms.push(summarize(durations).median)
      samples.get(name)!.cpuMs.push(used)
    }
  const median = (values: number[]): number => Math.round(summarize(values).median * 1_000) / 1_000
  return Object.fromEntries(
    Array.from(samples, ([name, { ms, cpuMs: used }]) => [name, { ms: median(ms), cpuMs: median(used) }]),
  )
}

async function measureClaims(url: string, postmaster: number, sizes: Sizes): Promise<Record<string, Cost>> {
  const pool = createPool(url, { name: 'events', max: 1 })
  try {
    const licenses = await insertLicenses(pool, LICENSES)
    let next = 0
    const claim = (): Claim => ({
      licenseId: licenses[next++ % LICENSES]!,
      machineId: uuidv7Bytes(),
      hostname: 'build',
    })
    const run = async (state: 'enable' | 'disable'): Promise<number[]> => {
      await pool.query(`alter table machines ${state} trigger ${TRIGGER}`)
      await pool.query('delete from occurrences')
      const durations: number[] = []
      for (let i = 0; i < sizes.claims; i++) {
        const claims = Array.from({ length: CLAIMS }, claim)
        const startedMs = performance.now()
        await claimSlots(pool, claims, { patient: false })
        durations.push(performance.now() - startedMs)
      }
      return durations
    }
    const kinds = { withoutOccurrences: () => run('disable'), withOccurrences: () => run('enable') }
    return await alternate(kinds, sizes.rounds, () => postgresCpuMs(postmaster))
  } finally {
    await pool.end()
  }
}

/** Creates a vendor with a product and a customer. Returns a function that makes changes and returns their durations. */
async function startChanging(port: number, endpoint: boolean, changes: number): Promise<() => Promise<number[]>> {
  const operator = caller(port, OPERATOR_TOKEN)
  const vendor = z.object({ managementToken: z.string() })
  const { value } = await operator('POST', 'organizations', vendor, { name: 'Bench', plan: 'STANDARD' })
  const call = caller(port, value.managementToken)
  const productId = (await call('POST', 'products', created, { name: 'p' })).value.id
  const customerId = (await call('POST', 'customers', created, { email: 'a@example.com' })).value.id
  // The host name does not exist, so no receiver takes processor time.
  if (endpoint) await call('POST', 'webhook-endpoints', created, { url: 'https://receiver.invalid/', types: ['*'] })
  return async () => {
    const durations: number[] = []
    const timed = async (...request: Parameters<Call>): Promise<string> => {
      const result = await call(request[0], request[1], created, request[3])
      durations.push(result.ms)
      return result.value.id
    }
    for (let i = 0; i < changes; i++) {
      const policy = { type: 'PERPETUAL', maxMachines: 5 }
      const id = await timed('POST', 'licenses', created, {
        productId,
        customerId,
        policy,
        metadata: { order: `${i}` },
      })
      await timed('PATCH', `licenses/${id}`, created, { metadata: { order: `${i}`, seats: '7' } })
      await timed('POST', `licenses/${id}/suspend`, created)
    }
    return durations
  }
}

/** Compares changes of this checkout, without and with a webhook endpoint, with those of the other checkout. */
async function measureChanges(
  url: string,
  postmaster: number,
  sizes: Sizes,
  against: string,
): Promise<Record<string, Cost>> {
  const other = resolve(against)
  const before = new URL(url)
  before.pathname = '/before'
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create database before')
  await client.end()
  const migrate = { nodeArguments: [], env: { DATABASE_URL: before.href } }
  await runToEnd(`${other}/infra/migrate/main.ts`, [], [], migrate)
  const ours = await startManagement(url)
  const theirs = await startManagement(before.href, other)
  const cpu = (): number => postgresCpuMs(postmaster) + (cpuMs(ours.pid) ?? 0) + (cpuMs(theirs.pid) ?? 0)
  const kinds = {
    before: await startChanging(theirs.port, false, sizes.changes),
    withoutEndpoint: await startChanging(ours.port, false, sizes.changes),
    withEndpoint: await startChanging(ours.port, true, sizes.changes),
  }
  try {
    return await alternate(kinds, sizes.rounds, cpu)
  } finally {
    await Promise.all([ours.stop(), theirs.stop()])
  }
}
