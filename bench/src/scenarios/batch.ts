/** Measures checks of known machines in batches of 100, against the same checks as single requests. */

import { barsOf } from '../harness/bars.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds, requireWrk } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const SINGLE = 'single requests'
const BATCH = 'batches of 100'

export const batch: Scenario = {
  name: 'batch',
  summary: 'known machines in batches of 100, against single requests',
  run: async (bench) => {
    requireWrk()
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const server = await startKeyward(databaseUrl, bench.plan, { env: { TRUSTED_PROXIES: 'all' } })
    try {
      const checks = knownChecks(shape, { count: CHECK_COUNT, forwarded: true })
      const contenders = [
        { name: SINGLE, server, checks },
        { name: BATCH, server, checks, batchSize: 100 },
      ]
      const rounds = await alternate(contenders, bench)
      const perCore = column(rounds, BATCH, 'cpuUs').map((us) => 1_000_000 / us)
      const gain = summarize(ratios(column(rounds, SINGLE, 'cpuUs'), column(rounds, BATCH, 'cpuUs')))
      const goal = judge('batch', summarize(perCore))
      bench.log(
        `${Math.round(goal.measured.median).toLocaleString('en-US')} checks a second of processor time in batches; ` +
          `a single check takes ${gain.median.toFixed(1)} x as much`,
      )
      return {
        title: 'Batches',
        question: 'How many checks does a validator decide when a request contains 100 of them?',
        headlines: [
          {
            figure: Math.round(summarize(column(rounds, BATCH, 'perSecond')).median).toLocaleString('en-US'),
            text: 'checks a second on one core, in requests of 100 checks',
          },
        ],
        goals: [goal],
        charts: [
          {
            kind: 'dots',
            title: 'Checks a second of processor time, in batches of 100',
            unit: 'checks/s',
            rows: [{ label: BATCH, values: perCore, goal: goal.value, direction: goal.direction }],
          },
          barsOf('Checks a second, one worker on one core', 'checks/s', contenders, (name) =>
            column(rounds, name, 'perSecond'),
          ),
          barsOf('Processor time of the server per check', 'us', contenders, (name) => column(rounds, name, 'cpuUs')),
        ],
        notes: [
          'The processor time includes the recording of the checks in the main thread.',
          'Both contenders send the same checks of 200,000 licenses, with address rules. A batch is of one organization.',
        ],
        figures: { rounds: Object.fromEntries(rounds), summaries: describeRounds(rounds), gain },
      }
    } finally {
      await server.stop()
    }
  },
}
