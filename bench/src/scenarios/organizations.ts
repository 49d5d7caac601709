/** Measures checks of known machines in databases with few and with many organizations. */

import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeOf } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, compare, type Contender } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'

const COUNTS = [10, 10_000, 30_000]
const QUICK_COUNTS = [10, 1_000]

export const organizations: Scenario = {
  name: 'organizations',
  summary: 'known machines of 10, 10,000 and 30,000 organizations, 100 k licenses and 10 k rules',
  run: async (bench) => {
    const counts = bench.quick ? QUICK_COUNTS : COUNTS
    const contenders: Contender[] = []
    try {
      for (const count of counts) {
        const shape = { ...shapeOf(100_000, 10_000), organizations: count }
        const server = await startKeyward(await openShape(bench.postgres, shape, bench.log), bench.plan)
        const checks = knownChecks(shape, { count: CHECK_COUNT, addressRules: false })
        contenders.push({ name: `${count} organizations`, server, checks })
      }
      const [few, ...many] = contenders
      const ceiling = await startBaseline('ceiling', '', bench.plan)
      contenders.push({ name: 'ceiling', server: ceiling, checks: few!.checks, constant: true })
      const rounds = await alternate(contenders, bench)
      const ratios = many.map(({ name }) => [name, compare(rounds, 'cpuUs', name, few!.name)] as const)
      return {
        goals: bench.quick ? [] : [judge('organizations', ratios.at(-1)![1])],
        figures: {
          rounds: Object.fromEntries(rounds),
          againstFew: Object.fromEntries(ratios.map(([name, values]) => [name, summarize(values)])),
        },
      }
    } finally {
      await Promise.all(contenders.map(({ server }) => server.stop()))
    }
  },
}
