/** Measures the cost of recording by a comparison with a validator in which a preloaded module disables recording. */

import { join } from 'node:path'

import { barsOf } from '../harness/bars.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds, requireWrk, type Contender } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const WITHOUT = join(import.meta.dirname, '../harness/without-recording.ts')

export const recording: Scenario = {
  name: 'recording',
  summary: 'recording on against recording disabled',
  run: async (bench) => {
    requireWrk()
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const on = await startKeyward(databaseUrl, bench.plan)
    const off = await startKeyward(databaseUrl, bench.plan, { nodeArguments: ['--import', WITHOUT] })
    try {
      const few = knownChecks(shape, { count: 1_000, addressRules: false })
      const many = knownChecks(shape, { count: CHECK_COUNT, addressRules: false })
      const contenders: Contender[] = [
        { name: 'on, 1,000 machines', server: on, checks: few },
        { name: 'off, 1,000 machines', server: off, checks: few },
        { name: 'on, 200,000 machines', server: on, checks: many },
        { name: 'off, 200,000 machines', server: off, checks: many },
      ]
      const rounds = await alternate(contenders, bench)
      const ratioOf = (machines: string): number[] =>
        ratios(column(rounds, `on, ${machines}`, 'perSecond'), column(rounds, `off, ${machines}`, 'perSecond'))
      const [popular, wide] = [ratioOf('1,000 machines'), ratioOf('200,000 machines')]
      return {
        title: 'Recording',
        question: 'How much throughput do counters, analytics, activity and last-seen times cost?',
        goals: [judge('recording', summarize(popular)), judge('recordingWide', summarize(wide))],
        charts: [
          barsOf('Checks a second, one worker on one core', 'checks/s', contenders, (name) =>
            column(rounds, name, 'perSecond'),
          ),
        ],
        notes: [
          'The main thread, which aggregates and writes, runs on the core of the worker.',
          'With 200,000 machines, hardly any machine checks twice within a second, so checks are not combined and the limits of memory are reached.',
        ],
        figures: { rounds: describeRounds(rounds), ratios: { popular, wide } },
      }
    } finally {
      await Promise.all([on.stop(), off.stop()])
    }
  },
}
