/**
 * Measures start, memory, propagation and throughput over databases of growing size. The validators of all sizes run at the same time, and
 * each round measures every size, so that disturbances of the machine affect all sizes alike.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import { insertOrganization } from '@keyward/testkit'

import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeOf } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { measureChanges, prepareCases } from '../harness/propagation.ts'
import { alternate, compare } from '../harness/rounds.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { type Server, startBaseline, startKeyward } from '../harness/servers.ts'
import { type Percentiles, percentiles, summarize } from '../harness/stats.ts'
import { residentBytes } from '../harness/usage.ts'

const SIZES = [
  { licenses: 1000, rules: 10 },
  { licenses: 100_000, rules: 10_000 },
  { licenses: 1_000_000, rules: 100_000 },
  { licenses: 1_000_000, rules: 1_000_000 },
  { licenses: 3_000_000, rules: 1_000_000 },
  { licenses: 10_000_000, rules: 1_000_000 },
]
/** The changes with which propagation is measured, and the pause between them. */
const CHANGES = 300
const GAP_MS = 5
/** The time in which a process releases the memory that only the load needed. */
const SETTLE_MS = 5_000

interface Size {
  name: string
  licenses: number
  rules: number
  server: Server
  residentBytes: number
  /** The milliseconds from the commit of a change until the validator enforces it. */
  propagationMs: Percentiles
}

export const growth: Scenario = {
  name: 'growth',
  summary: 'start, memory, throughput and propagation from 1 k licenses and 10 rules to 10 M and 1 M',
  run: async (bench) => {
    const ceiling = await startBaseline('ceiling', '', bench.plan)
    const sizes: Size[] = []
    try {
      for (const { licenses, rules } of bench.quick ? SIZES.slice(0, 2) : SIZES)
        sizes.push(await startSize(bench, licenses, rules))
      const contenders = sizes.map(({ name, server, licenses, rules }) => {
        return { name, server, checks: knownChecks(shapeOf(licenses, rules), { count: CHECK_COUNT, forwarded: true }) }
      })
      const { checks } = contenders[0]!
      const rounds = await alternate(
        [{ name: 'ceiling', server: ceiling, checks, constant: true }, ...contenders],
        bench,
      )
      return {
        goals: goalsOf(sizes, (name, against) => compare(rounds, 'perSecond', name, against)),
        figures: {
          sizes: sizes.map(({ server, ...size }) => ({
            ...size,
            readyMs: server.readyMs,
            throughputOfTheCeiling: summarize(compare(rounds, 'perSecond', size.name, 'ceiling')),
          })),
          rounds: Object.fromEntries(rounds),
        },
      }
    } finally {
      await Promise.all([ceiling, ...sizes.map(({ server }) => server)].map((server) => server.stop()))
    }
  },
}

/** Returns the goals whose sizes were measured. A quick run measures too few sizes. */
function goalsOf(sizes: readonly Size[], throughput: (name: string, against: string) => number[]) {
  const find = (licenses: number, rules: number): Size | undefined =>
    sizes.find((size) => size.licenses === licenses && size.rules === rules)
  const [small, usual, large] = [find(1000, 10), find(1_000_000, 100_000), find(3_000_000, 1_000_000)]
  if (small === undefined || usual === undefined || large === undefined) return []
  return [
    judge('growth', throughput(large.name, small.name)),
    judge('bytesPerLicense', [(usual.residentBytes - small.residentBytes) / usual.licenses]),
    judge('start', [usual.server.readyMs / 1000]),
  ]
}

async function startSize(bench: Bench, licenses: number, rules: number): Promise<Size> {
  const name = `${licenses.toLocaleString('en-US')} licenses, ${rules.toLocaleString('en-US')} rules`
  const databaseUrl = await openShape(bench.postgres, shapeOf(licenses, rules), bench.log)
  const server = await startKeyward(databaseUrl, bench.plan, { TRUSTED_PROXIES: 'all' })
  await sleep(bench.quick ? 0 : SETTLE_MS)
  const bytes = residentBytes(server.pid)
  if (bytes === null) throw new Error('this system does not report the memory of a process')
  const propagationMs = await measurePropagation(databaseUrl, server)
  const ready = `ready after ${(server.readyMs / 1000).toFixed(1)} s with ${(bytes / 2 ** 20).toFixed(0)} MiB`
  bench.log(`${name}: ${ready}, enforces a change after p50 ${propagationMs.p50} ms, p99 ${propagationMs.p99} ms`)
  return { name, licenses, rules, server, residentBytes: bytes, propagationMs }
}

/** Makes changes in an organization of their own, which is deleted afterwards. */
async function measurePropagation(databaseUrl: string, keyward: Server): Promise<Percentiles> {
  const pool = createPool(databaseUrl, { name: 'growth', max: 2 })
  const organizationId = await insertOrganization(pool)
  try {
    const cases = await prepareCases(pool, organizationId, CHANGES)
    const samples = await measureChanges(pool, cases, [keyward], GAP_MS)
    return percentiles(samples.map(({ sinceCommitMs }) => sinceCommitMs))
  } finally {
    await pool.query('delete from organizations where id = $1', [organizationId])
    await pool.end()
  }
}
