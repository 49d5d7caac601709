/**
 * Measures the management API over a Postgres of its own, with durable commits: the import of 1,000 rules into organizations of
 * growing size, and a list of 100,000 rules read page by page. `node bench/src/programs/management.ts` writes bench/results/management.json;
 * `--help` says so.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import { z } from 'zod'

import { startChild } from '../harness/children.ts'
import { writeResult } from '../report/results.ts'

const OPERATOR_TOKEN = 'operator-token-of-the-bench'
const RULES_A_REQUEST = 1_000
const IMPORTS = 100
const PAGE = 100
const PASSES = 5

const created = z.object({ id: z.string(), managementToken: z.string() })
const imported = z.object({ created: z.int(), skipped: z.int() })
const listed = z.object({ data: z.array(z.object({ id: z.string() })), nextCursor: z.string().nullable() })

type Call = <T>(method: string, path: string, schema: z.ZodType<T>, body?: object) => Promise<{ value: T; ms: number }>

function caller(port: number, token: string): Call {
  return async (method, path, schema, body) => {
    const payload = body === undefined ? {} : { body: JSON.stringify(body) }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const started = performance.now()
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, { method, headers, ...payload })
    const value: unknown = await response.json()
    const ms = performance.now() - started
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${JSON.stringify(value)}`)
    return { value: schema.parse(value), ms }
  }
}

interface Times {
  count: number
  firstMs: number
  medianMs: number
  p99Ms: number
  maxMs: number
}

function summarize(times: readonly number[]): Times {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round((sorted[Math.ceil(share * sorted.length) - 1] ?? 0) * 100) / 100
  const firstMs = Math.round((times[0] ?? 0) * 100) / 100
  return { count: times.length, firstMs, medianMs: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}

/** Addresses, machine ids and countries mixed, none twice. */
function rules(round: number): object[] {
  return Array.from({ length: RULES_A_REQUEST }, (_, i) => {
    const n = round * RULES_A_REQUEST + i
    const common = { kind: n % 3 === 0 ? 'EXCLUSION' : 'BLACKLIST', scope: 'ORGANIZATION', note: `row ${n}` }
    if (n % 2 === 0) return { ...common, type: 'HWID', value: `machine-${n}` }
    return { ...common, type: 'IP', value: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}` }
  })
}

async function measureImports(call: Call): Promise<{ fresh: Times; repeated: Times }> {
  const times: number[] = []
  for (let round = 0; round < IMPORTS; round++) {
    const { value, ms } = await call('POST', 'access-rules/import', imported, { rules: rules(round) })
    if (value.created !== RULES_A_REQUEST) throw new Error(`only ${value.created} rules were created`)
    times.push(ms)
  }
  const again: number[] = []
  for (let round = 0; round < 10; round++) {
    const { value, ms } = await call('POST', 'access-rules/import', imported, { rules: rules(round) })
    if (value.skipped !== RULES_A_REQUEST) throw new Error(`only ${value.skipped} rules were skipped`)
    again.push(ms)
  }
  return { fresh: summarize(times), repeated: summarize(again) }
}

/** Reads the whole list once. Answers the time of each page. */
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

/** The best of several passes for each page, so that what is compared is its depth and not what else the machine did. */
async function measureList(call: Call): Promise<object> {
  await readList(call) // warms up
  const passes: number[][] = []
  for (let pass = 0; pass < PASSES; pass++) passes.push(await readList(call))
  const best = (passes[0] ?? []).map((_, page) => Math.min(...passes.map((times) => times[page] ?? Infinity)))
  const tenth = Math.floor(best.length / 10)
  return {
    passes: PASSES,
    pages: summarize(best),
    firstTenthMs: summarize(best.slice(0, tenth)).medianMs,
    lastTenthMs: summarize(best.slice(-tenth)).medianMs,
  }
}

async function measure(databaseUrl: string): Promise<object> {
  const management = await startChild({
    file: join(import.meta.dirname, '../../../services/management/src/main.ts'),
    env: {
      DATABASE_URL: databaseUrl,
      MANAGEMENT_PORT: '0',
      MANAGEMENT_ADMIN_PORT: '0',
      MANAGEMENT_RATE_LIMIT: '1000000',
      OPERATOR_TOKEN,
      MASTER_KEY: '00'.repeat(32),
      LOG_LEVEL: 'warn',
    },
  })
  try {
    const operator = caller(management.port, OPERATOR_TOKEN)
    const { value } = await operator('POST', 'organizations', created, { name: 'Bench', plan: 'STANDARD' })
    const call = caller(management.port, value.managementToken)
    const imports = await measureImports(call)
    return { import1000: imports, list100000: await measureList(call) }
  } finally {
    await management.stop()
  }
}

const { values } = parseArgs({ options: { help: { type: 'boolean' } } })
if (values.help === true) {
  console.log('node bench/src/programs/management.ts   takes no options; writes bench/results/management.json')
  process.exit()
}
const folder = await mkdtemp(join(tmpdir(), 'keyward-bench-'))
await chmod(folder, 0o755)
const postgres = await startPostgres({ dataFolder: join(folder, 'data') })
try {
  await migrate(postgres.url)
  const data = await measure(postgres.url)
  console.log(JSON.stringify(data, null, 2))
  console.log(`written to ${writeResult('management', data)}`)
} finally {
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}
