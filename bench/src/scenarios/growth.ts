/** Measures start, memory, throughput and propagation over databases of growing size. */

import { createPool } from '@keyward/database'
import { insertOrganization } from '@keyward/testkit'

import { CHECK_COUNT, knownChecks, shapeOf } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { measureChanges, prepareCases } from '../harness/propagation.ts'
import { alternate, column, requireWrk } from '../harness/rounds.ts'
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts'
import { type Server, startBaseline, startKeyward } from '../harness/servers.ts'
import { type Percentiles, percentiles, ratios, summarize, type Summary } from '../harness/stats.ts'
import { residentBytes } from '../harness/usage.ts'
import type { Chart } from '../report/chart.ts'

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

interface Size {
  label: string
  licenses: number
  rules: number
  readyMs: number
  residentMiB: number | null
  perSecond: Summary
  cpuUs: Summary | null
  againstCeiling: Summary
  /** The milliseconds from the commit of a change until the validator enforces it. */
  propagationMs: Percentiles
}

export const growth: Scenario = {
  name: 'growth',
  summary: 'start, memory, throughput and propagation from 1 k licenses and 10 rules to 10 M and 1 M',
  run: async (bench) => {
    requireWrk()
    const sizes: Size[] = []
    const ceiling = await startBaseline('ceiling', '', bench.plan)
    try {
      for (const { licenses, rules } of bench.quick ? SIZES.slice(0, 2) : SIZES) {
        sizes.push(await measureSize(bench, ceiling, licenses, rules))
      }
    } finally {
      await ceiling.stop()
    }
    return describe(sizes)
  },
}

async function measureSize(bench: Bench, ceiling: Server, licenses: number, rules: number): Promise<Size> {
  const shape = shapeOf(licenses, rules)
  const databaseUrl = await openShape(bench.postgres, shape, bench.log)
  const keyward = await startKeyward(databaseUrl, bench.plan, { env: { TRUSTED_PROXIES: 'all' } })
  try {
    const bytes = residentBytes(keyward.pid)
    const checks = knownChecks(shape, { count: CHECK_COUNT, forwarded: true })
    const contenders = [
      { name: 'ceiling', server: ceiling, checks, constant: true },
      { name: 'keyward', server: keyward, checks },
    ]
    const rounds = await alternate(contenders, { ...bench, rounds: Math.ceil(bench.rounds / 2) })
    const cpu = rounds
      .get('keyward')!
      .map(({ cpuUs }) => cpuUs)
      .filter((value) => value !== null)
    return {
      label: `${short(licenses)} + ${short(rules)}`,
      licenses,
      rules,
      readyMs: keyward.readyMs,
      residentMiB: bytes === null ? null : bytes / 2 ** 20,
      perSecond: summarize(column(rounds, 'keyward', 'perSecond')),
      cpuUs: cpu.length === 0 ? null : summarize(cpu),
      againstCeiling: summarize(ratios(column(rounds, 'keyward', 'perSecond'), column(rounds, 'ceiling', 'perSecond'))),
      propagationMs: await measurePropagation(databaseUrl, keyward),
    }
  } finally {
    await keyward.stop()
  }
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

function describe(sizes: Size[]): Outcome {
  const bars = (title: string, unit: string, value: (size: Size) => number | null, log = false): Chart => ({
    kind: 'bars',
    title,
    unit,
    log,
    bars: sizes.flatMap((size) => {
      const shown = value(size)
      return shown === null ? [] : [{ label: size.label, value: shown, ours: true }]
    }),
  })
  return {
    title: 'Growth',
    question:
      'What do more licenses and rules cost at the start, in memory, per check, and until a change is enforced?',
    goals: [],
    charts: [
      bars('Checks a second by size (licenses + rules)', 'checks/s', (size) => size.perSecond.median),
      bars('Processor time per response', 'us', (size) => size.cpuUs?.median ?? null),
      bars('From start to ready', 's', (size) => size.readyMs / 1000, true),
      bars('Memory of the process after loading', 'MiB', (size) => size.residentMiB, true),
      bars('From the commit of a change to its enforcement, 99th percentile', 'ms', (size) => size.propagationMs.p99),
    ],
    notes: ['Every license has three machines. Memory is that of the whole process after loading, including Node.'],
    figures: { sizes },
  }
}

function short(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`
  return count >= 1000 ? `${count / 1000} k` : String(count)
}
