/** Compares Keyward with the usual first implementation: a framework and one good SQL statement per check. */

import { barsOf } from '../harness/bars.ts'
import { descendants, pinTree } from '../harness/cores.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds } from '../harness/rounds.ts'
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const TOGETHER = 'Fastify + SQL, one core'
const SEPARATE = 'Fastify + SQL, Postgres on a core of its own'

export const sql: Scenario = {
  name: 'sql',
  summary: 'known machines, 1 M licenses and 100 k rules, against Fastify with one SQL statement per check',
  run: async (bench) => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const keyward = await startKeyward(databaseUrl, bench.plan)
    const fastify = await startBaseline('fastify-sql', databaseUrl, bench.plan)
    try {
      const checks = knownChecks(shape, { count: CHECK_COUNT, addressRules: false })
      const helpers = (): number[] => postgresProcesses(bench)
      const contenders = [
        { name: 'Keyward', server: keyward, checks, helpers, prepare: () => movePostgres(bench, bench.plan.server) },
        { name: TOGETHER, server: fastify, checks, helpers, prepare: () => movePostgres(bench, bench.plan.server) },
        { name: SEPARATE, server: fastify, checks, helpers, prepare: () => movePostgres(bench, bench.plan.postgres) },
      ]
      const rounds = await alternate(contenders, bench)
      return describe(rounds)
    } finally {
      movePostgres(bench, bench.plan.postgres)
      await Promise.all([keyward.stop(), fastify.stop()])
    }
  },
}

function describe(rounds: Awaited<ReturnType<typeof alternate>>): Outcome {
  const gain = ratios(column(rounds, 'Keyward', 'perSecond'), column(rounds, TOGETHER, 'perSecond'))
  const shown = [{ name: 'Keyward' }, { name: TOGETHER, constant: true }, { name: SEPARATE, constant: true }]
  const cpu = summarize(ratios(column(rounds, TOGETHER, 'cpuUs'), column(rounds, 'Keyward', 'cpuUs')))
  return {
    title: 'Against Fastify and one SQL statement per check',
    question: 'How much faster are decisions from memory than one database query per check?',
    goals: [judge('againstSql', summarize(gain))],
    charts: [
      {
        kind: 'dots',
        title: 'Throughput against Fastify + SQL on the same one core',
        unit: 'x',
        rows: [{ label: 'Keyward', values: gain, goal: 25, direction: 'at least' }],
      },
      barsOf('Checks a second', 'checks/s', shown, (name) => column(rounds, name, 'perSecond'), true),
      barsOf(
        'Processor time per response, Postgres included',
        'us',
        shown,
        (name) => column(rounds, name, 'cpuUs'),
        true,
      ),
    ],
    notes: [
      'Server and Postgres share one core. In the third bar Postgres has another core.',
      'The baseline does less than Keyward: no address or country rules, and no slots.',
    ],
    figures: { rounds: Object.fromEntries(rounds), summaries: describeRounds(rounds), cpuTimesKeyward: cpu },
  }
}

function postgresProcesses(bench: Bench): number[] {
  const { pid } = bench.postgres
  return pid === null ? [] : [pid, ...descendants(pid)]
}

function movePostgres(bench: Bench, cores: number[]): void {
  if (bench.postgres.pid !== null) pinTree(bench.postgres.pid, cores, bench.plan)
}
