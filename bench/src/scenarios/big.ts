/**
 * Compares checks over a small index and over a large one in alternating rounds, to find whether the cost grows with the
 * size.
 */

import { barsOf } from '../harness/bars.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds, requireWrk } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const SMALL = '1 k licenses, 10 rules'
const LARGE = '3 M licenses, 1 M rules'

export const big: Scenario = {
  name: 'big',
  summary: '3 M licenses and 1 M rules against 1 k licenses and 10 rules',
  run: async (bench) => {
    requireWrk()
    const [small, large] = [shapeFor(bench, 1000, 10), shapeFor(bench, 3_000_000, 1_000_000)]
    const smallUrl = await openShape(bench.postgres, small, bench.log)
    const largeUrl = await openShape(bench.postgres, large, bench.log)
    const env = { TRUSTED_PROXIES: 'all' }
    const smallServer = await startKeyward(smallUrl, bench.plan, { env })
    const largeServer = await startKeyward(largeUrl, bench.plan, { env })
    try {
      const choice = { count: CHECK_COUNT, forwarded: true }
      const rounds = await alternate(
        [
          { name: SMALL, server: smallServer, checks: knownChecks(small, choice) },
          { name: LARGE, server: largeServer, checks: knownChecks(large, choice) },
        ],
        bench,
      )
      const kept = ratios(column(rounds, LARGE, 'perSecond'), column(rounds, SMALL, 'perSecond'))
      const shown = [{ name: SMALL }, { name: LARGE }]
      return {
        title: 'A large index against a small one',
        question: 'Does a check cost more when millions of licenses and rules are loaded?',
        goals: [judge('growth', summarize(kept))],
        charts: [
          {
            kind: 'dots',
            title: 'Throughput with 3 M + 1 M against 1 k + 10',
            unit: 'x',
            rows: [{ label: 'large / small', values: kept, goal: 0.85, direction: 'at least' }],
          },
          barsOf('Processor time per response', 'us', shown, (name) => column(rounds, name, 'cpuUs')),
        ],
        notes: [
          'The difference is cache misses: 200,000 licenses are checked in the large index, and 1,000 in the small one.',
        ],
        figures: { rounds: Object.fromEntries(rounds), summaries: describeRounds(rounds) },
      }
    } finally {
      await Promise.all([smallServer.stop(), largeServer.stop()])
    }
  },
}
