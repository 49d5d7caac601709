/**
 * Measures checks of machines that hold their slot, which are nearly all checks of real traffic, against the ceiling. Also measures the
 * same checks in batches of 100.
 */

import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, compare, type Contender } from '../harness/rounds.ts'
import type { Outcome, Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'
import { CLIENT_HEADERS } from '../load/checks.ts'

/**
 * The contenders, each with the ceiling that receives requests of the same form, and with the goal for the ratio of their processor times.
 */
const COMPARED = [
  { name: '1,000 licenses', ceiling: 'ceiling', goal: 'knownSmall' },
  { name: 'no address rules', ceiling: 'ceiling', goal: 'knownUnaddressed' },
  { name: 'all proxies trusted', ceiling: 'ceiling, x-forwarded-for', goal: 'knownTrusted' },
  { name: 'peer lookup', ceiling: 'ceiling', goal: 'knownPeer' },
  { name: '12 headers', ceiling: 'ceiling, 12 headers', goal: 'headers' },
] as const
const BATCHES = 'batches of 100'

export const known: Scenario = {
  name: 'known',
  summary: 'known machines, 1 M licenses and 100 k rules, against bare uWebSockets.js, and in batches',
  run: async (bench): Promise<Outcome> => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const smallShape = shapeFor(bench, 1_000, 10)
    const small = await startKeyward(await openShape(bench.postgres, smallShape, bench.log), bench.plan)
    const ceiling = await startBaseline('ceiling', databaseUrl, bench.plan)
    const keyward = await startKeyward(databaseUrl, bench.plan)
    const trusting = await startKeyward(databaseUrl, bench.plan, { TRUSTED_PROXIES: 'all' })
    try {
      const count = CHECK_COUNT
      const few = knownChecks(smallShape, { count, addressRules: false })
      const plain = knownChecks(shape, { count, addressRules: false })
      const addressed = knownChecks(shape, { count, addressRules: true })
      const forwarded = knownChecks(shape, { count, addressRules: true, forwarded: true })
      const headed = plain.map((check) => ({ ...check, headers: CLIENT_HEADERS }))
      const all = knownChecks(shape, { count, forwarded: true })
      const contenders: Contender[] = [
        { name: 'ceiling', server: ceiling, checks: plain, constant: true },
        { name: '1,000 licenses', server: small, checks: few },
        { name: 'no address rules', server: keyward, checks: plain },
        { name: 'peer lookup', server: keyward, checks: addressed },
        { name: 'ceiling, x-forwarded-for', server: ceiling, checks: forwarded, constant: true },
        { name: 'ceiling, 12 headers', server: ceiling, checks: headed, constant: true },
        { name: '12 headers', server: keyward, checks: headed },
        { name: 'all proxies trusted', server: trusting, checks: forwarded },
        { name: BATCHES, server: trusting, checks: all, batchSize: 100 },
      ]
      const rounds = await alternate(contenders, bench)
      const perCore = column(rounds, BATCHES, 'cpuUs').map((us) => 1_000_000 / us)
      const goals = COMPARED.map(({ name, ceiling: own, goal }) => judge(goal, compare(rounds, 'cpuUs', name, own)))
      const throughput = COMPARED.map(
        ({ name, ceiling: own }) => [name, summarize(compare(rounds, 'perSecond', name, own))] as const,
      )
      return {
        goals: [...goals, judge('batch', perCore)],
        figures: { rounds: Object.fromEntries(rounds), throughputOfTheCeiling: Object.fromEntries(throughput) },
      }
    } finally {
      await Promise.all([small.stop(), ceiling.stop(), keyward.stop(), trusting.stop()])
    }
  },
}
