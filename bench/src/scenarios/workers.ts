/**
 * Measures the throughput of 1 to 16 workers, each with a core that the load generator does not use. Also measures the processor time of a
 * check with one and with two workers on the same core, which needs only two cores.
 */

import { planCores } from '../harness/cores.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, requireWrk, type Contender } from '../harness/rounds.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startKeyward } from '../harness/servers.ts'
import { ratios, summarize, type Summary } from '../harness/stats.ts'
import { residentBytes } from '../harness/usage.ts'
import type { Check } from '../load/checks.ts'
import type { Chart } from '../report/chart.ts'

const WORKERS = [1, 2, 4, 8, 16]

interface Step {
  workers: number
  perSecond: Summary
  residentMiB: number | null
}

export const workers: Scenario = {
  name: 'workers',
  summary:
    'throughput over 1, 2, 4, 8 and 16 workers, as far as there are cores, and processor time with 1 and 2 workers',
  run: async (bench) => {
    requireWrk()
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const steps: Step[] = []
    const skipped: number[] = []
    const checks = knownChecks(shape, { count: CHECK_COUNT })
    for (const count of WORKERS) {
      if (coresAllow(count)) steps.push(await measureStep(bench, databaseUrl, count, checks))
      else skipped.push(count)
    }
    const shared = await measureOnOneCore(bench, databaseUrl, checks)
    const times = ratios(shared['2 workers'], shared['1 worker'])
    return {
      title: 'Scaling over workers',
      question: 'How much throughput do more cores bring?',
      goals: [judge('workerTime', summarize(times))],
      charts: chartsOf(steps),
      notes: [
        "The main thread, which follows the change log, runs on the workers' cores.",
        ...(skipped.length === 0
          ? []
          : [`Skipped because the machine has too few cores: ${skipped.join(', ')} workers.`]),
      ],
      figures: {
        steps,
        skipped,
        cpuUsOnOneCore: { '1 worker': summarize(shared['1 worker']), '2 workers': summarize(shared['2 workers']) },
      },
    }
  },
}

function chartsOf(steps: readonly Step[]): Chart[] {
  const bars: Chart = {
    kind: 'bars',
    title: 'Checks a second by workers',
    unit: 'checks/s',
    log: false,
    bars: steps.map(({ workers: count, perSecond: { median, low, high } }) => ({
      label: count === 1 ? '1 worker' : `${count} workers`,
      value: median,
      low,
      high,
      ours: true,
    })),
  }
  const first = steps[0]?.perSecond.median ?? 0
  if (steps.length < 2) return [bars]
  const lines: Chart = {
    kind: 'lines',
    title: 'Against a multiple of one worker',
    x: { label: 'workers', log: true, ticks: steps.map(({ workers: at }) => ({ at, text: String(at) })) },
    y: { label: 'checks/s', log: false },
    series: [
      { label: 'Keyward', ours: true, points: steps.map(({ workers: at, perSecond }) => [at, perSecond.median]) },
      { label: 'multiple of one worker', ours: false, points: steps.map(({ workers: at }) => [at, at * first]) },
    ],
  }
  return [bars, lines]
}

/** Returns whether the cores suffice for the workers and wrk, which needs one core for every two workers. */
function coresAllow(count: number): boolean {
  try {
    return planCores(count).load.length >= count / 2
  } catch {
    return false
  }
}

/** Returns the processor time of a check in microseconds in each round, of validators with one and with two workers on the same core. */
async function measureOnOneCore(bench: Bench, databaseUrl: string, checks: readonly Check[]) {
  const contenders: Contender[] = []
  try {
    for (const [name, count] of [
      ['1 worker', 1],
      ['2 workers', 2],
    ] as const)
      contenders.push({ name, server: await startKeyward(databaseUrl, bench.plan, { workers: count }), checks })
    const rounds = await alternate(contenders, bench)
    return { '1 worker': column(rounds, '1 worker', 'cpuUs'), '2 workers': column(rounds, '2 workers', 'cpuUs') }
  } finally {
    await Promise.all(contenders.map(({ server }) => server.stop()))
  }
}

async function measureStep(bench: Bench, databaseUrl: string, count: number, checks: readonly Check[]): Promise<Step> {
  const plan = planCores(count)
  const server = await startKeyward(databaseUrl, plan, { workers: count })
  try {
    const stepBench = { ...bench, plan, connections: bench.connections * count, rounds: Math.ceil(bench.rounds / 2) }
    const rounds = await alternate([{ name: `${count} workers`, server, checks }], stepBench)
    const bytes = residentBytes(server.pid)
    return {
      workers: count,
      perSecond: summarize(column(rounds, `${count} workers`, 'perSecond')),
      residentMiB: bytes === null ? null : bytes / 2 ** 20,
    }
  } finally {
    await server.stop()
  }
}
