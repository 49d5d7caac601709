// Keyward against the obvious data structures in memory: a server that compares every rule in turn, and Node's own list of
// networks.
import { measureBlockList } from '../baselines/block-list.ts'
import { barsOf } from '../harness/bars.ts'
import { CHECK_COUNT, checksOf, shapeOf } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const SCANNED = 'Express, rules in turn'

export const scan: Scenario = {
  name: 'scan',
  summary: '100 k licenses and 10 k rules, against Express comparing rules in turn; net.BlockList alone',
  run: async (bench) => {
    const shape = shapeOf(100_000, 10_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.say)
    const keyward = await startKeyward(databaseUrl, bench.plan, { env: { TRUSTED_PROXIES: 'all' } })
    const express = await startBaseline('express-scan', databaseUrl, bench.plan)
    try {
      const checks = checksOf(shape, { count: CHECK_COUNT, addressRules: true, forwarded: true })
      const rounds = await alternate(
        [
          { name: 'Keyward', server: keyward, checks },
          { name: SCANNED, server: express, checks },
        ],
        bench,
      )
      const shown = [{ name: 'Keyward' }, { name: SCANNED, constant: true }]
      const blockList = [100, 1000, 10_000].map((networks) => measureBlockList(networks, bench.quick ? 200 : 1000))
      return {
        title: 'Against rules compared in turn',
        question: 'What do tries and hash tables buy over a loop through the rules of one organization?',
        goals: [],
        charts: [
          barsOf(
            'Checks a second, 1,000 rules an organization',
            'checks/s',
            shown,
            (name) => column(rounds, name, 'perSecond'),
            true,
          ),
          {
            kind: 'bars',
            title: 'One look-up in net.BlockList',
            unit: 'ns',
            log: true,
            bars: blockList.map(({ networks, nsPerLookup }) => ({
              label: `${networks.toLocaleString('en-US')} networks`,
              value: nsPerLookup,
              ours: false,
            })),
          },
        ],
        notes: ['Addresses are parsed once in both; the difference is the comparing.'],
        figures: {
          rounds: Object.fromEntries(rounds),
          summaries: describeRounds(rounds),
          timesExpress: summarize(ratios(column(rounds, 'Keyward', 'perSecond'), column(rounds, SCANNED, 'perSecond'))),
          blockList,
        },
      }
    } finally {
      await Promise.all([keyward.stop(), express.stop()])
    }
  },
}
