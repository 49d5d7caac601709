/**
 * Measures the management API over a temporary Postgres with durable commits. Imports 1,000 rules at a time until an organization has
 * 100,000, repeats ten of the imports, and then reads the list of rules page by page.
 */

import { z } from 'zod'

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { type Call, caller, OPERATOR_TOKEN, startManagement } from '../harness/management-api.ts'
import { percentiles, type Percentiles, summarize } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/management.ts [options]

  --imports N       imports of 1,000 rules each (default 100)
  --passes N        passes through the list; the best time of each page counts (default 5)
  --help

Writes bench/results/management.json.`

const RULES_PER_IMPORT = 1_000
const PAGE = 100
const REPEATED_IMPORTS = 10

const created = z.object({ id: z.string(), managementToken: z.string() })
const imported = z.object({ created: z.int(), skipped: z.int() })
const listed = z.object({ data: z.array(z.object({ id: z.string() })), nextCursor: z.string().nullable() })

await runMain('management', async () => {
  const sizes = numbersFrom(HELP, { imports: 100, passes: 5 })
  if (sizes === null) return
  await withPostgres(async (url) => {
    const data = await measure(url, sizes)
    console.log(JSON.stringify(data, null, 2))
    console.log(writeResult('management', data))
  })
})

async function measure(databaseUrl: string, { imports, passes }: { imports: number; passes: number }): Promise<object> {
  const management = await startManagement(databaseUrl)
  try {
    const operator = caller(management.port, OPERATOR_TOKEN)
    const { value } = await operator('POST', 'organizations', created, { name: 'Bench', plan: 'STANDARD' })
    const call = caller(management.port, value.managementToken)
    const fresh = await importRules(call, imports, 'created')
    const repeated = await importRules(call, Math.min(imports, REPEATED_IMPORTS), 'skipped')
    return { imports: { fresh, repeated }, list: await measureList(call, passes) }
  } finally {
    await management.stop()
  }
}

interface Times extends Percentiles {
  count: number
  first: number
}

/** Returns the number of values, the first value and the percentiles. The values are times in milliseconds. */
function timesOf(values: readonly number[]): Times {
  return { count: values.length, first: Math.round(values[0]! * 100) / 100, ...percentiles(values) }
}

/** Imports the rules of all rounds. Throws unless each response counts all of its rules as `outcome`. */
async function importRules(call: Call, rounds: number, outcome: 'created' | 'skipped'): Promise<Times> {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { value, ms } = await call('POST', 'access-rules/import', imported, { rules: rulesOf(round) })
    if (value[outcome] !== RULES_PER_IMPORT) throw new Error(`only ${value[outcome]} rules were ${outcome}`)
    times.push(ms)
  }
  return timesOf(times)
}

/** Returns 1,000 rules about addresses and machine ids, without duplicates. */
function rulesOf(round: number): object[] {
  return Array.from({ length: RULES_PER_IMPORT }, (_, i) => {
    const n = round * RULES_PER_IMPORT + i
    const common = { kind: n % 3 === 0 ? 'EXCLUSION' : 'BLACKLIST', scope: 'ORGANIZATION', note: `row ${n}` }
    if (n % 2 === 0) return { ...common, type: 'HWID', value: `machine-${n}` }
    return { ...common, type: 'IP', value: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}` }
  })
}

/** Measures each page several times and uses the best time, so that disturbances of the machine do not count. */
async function measureList(call: Call, passes: number): Promise<object> {
  await readList(call) // warms up
  const all: number[][] = []
  for (let pass = 0; pass < passes; pass++) all.push(await readList(call))
  const best = all[0]!.map((_, page) => Math.min(...all.map((times) => times[page] ?? Infinity)))
  const tenth = Math.ceil(best.length / 10)
  return {
    passes,
    pages: timesOf(best),
    firstTenth: summarize(best.slice(0, tenth)).median,
    lastTenth: summarize(best.slice(-tenth)).median,
  }
}

/** Reads the whole list once. Returns the time of each page in milliseconds. */
async function readList(call: Call): Promise<number[]> {
  const times: number[] = []
  let cursor = ''
  for (;;) {
    const { value, ms } = await call('GET', `access-rules?limit=${PAGE}${cursor}`, listed)
    times.push(ms)
    if (value.nextCursor === null) return times
    cursor = `&cursor=${value.nextCursor}`
  }
}
