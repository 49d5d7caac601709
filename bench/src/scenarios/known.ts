/**
 * Measures checks of machines that hold their slot, which are nearly all checks of real traffic, against the ceiling.
 */

import { barsOf } from '../harness/bars.ts'
import { judge, type GoalOutcome } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds, requireWrk, type Contender, type Rounds } from '../harness/rounds.ts'
import type { Bench, Headline, Outcome, Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'
import type { Chart } from '../report/chart.ts'

/**
 * The contenders, each with the ceiling that receives requests of the same form, and with the goal for the ratio of their processor times.
 */
const COMPARED = [
  { name: '1,000 licenses', ceiling: 'ceiling', goal: 'knownSmall' },
  { name: 'no address rules', ceiling: 'ceiling', goal: 'knownUnaddressed' },
  { name: 'all proxies trusted', ceiling: 'ceiling, x-forwarded-for', goal: 'knownTrusted' },
  { name: 'peer lookup', ceiling: 'ceiling', goal: 'knownPeer' },
] as const

export const known: Scenario = {
  name: 'known',
  summary: 'known machines, 1 M licenses and 100 k rules, against bare uWebSockets.js',
  run: async (bench) => {
    requireWrk()
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const smallShape = shapeFor(bench, 1_000, 10)
    const small = await startKeyward(await openShape(bench.postgres, smallShape, bench.log), bench.plan)
    const ceiling = await startBaseline('ceiling', databaseUrl, bench.plan)
    const keyward = await startKeyward(databaseUrl, bench.plan)
    const trusting = await startKeyward(databaseUrl, bench.plan, { env: { TRUSTED_PROXIES: 'all' } })
    try {
      const plain = knownChecks(shape, { count: CHECK_COUNT, addressRules: false })
      const addressed = knownChecks(shape, { count: CHECK_COUNT, addressRules: true })
      const forwarded = knownChecks(shape, { count: CHECK_COUNT, addressRules: true, forwarded: true })
      return await compare(bench, [
        { name: 'ceiling', server: ceiling, checks: plain, constant: true },
        {
          name: '1,000 licenses',
          server: small,
          checks: knownChecks(smallShape, { count: CHECK_COUNT, addressRules: false }),
        },
        { name: 'no address rules', server: keyward, checks: plain },
        { name: 'peer lookup', server: keyward, checks: addressed },
        { name: 'ceiling, x-forwarded-for', server: ceiling, checks: forwarded, constant: true },
        { name: 'all proxies trusted', server: trusting, checks: forwarded },
      ])
    } finally {
      await Promise.all([small.stop(), ceiling.stop(), keyward.stop(), trusting.stop()])
    }
  },
}

function headlineOf(rounds: Rounds): Headline {
  const { median } = summarize(column(rounds, 'no address rules', 'perSecond'))
  return {
    figure: Math.round(median).toLocaleString('en-US'),
    text: 'checks a second on one core, with a million licenses and 100,000 access rules',
  }
}

async function compare(bench: Bench, contenders: Contender[]): Promise<Outcome> {
  const rounds = await alternate(contenders, bench)
  const throughput = COMPARED.map(({ name, ceiling }) =>
    ratios(column(rounds, name, 'perSecond'), column(rounds, ceiling, 'perSecond')),
  )
  const times = COMPARED.map(({ name, ceiling }) =>
    ratios(column(rounds, name, 'cpuUs'), column(rounds, ceiling, 'cpuUs')),
  )
  const goals: GoalOutcome[] = COMPARED.map(({ goal }, n) => judge(goal, summarize(times[n]!)))
  const charts: Chart[] = [
    {
      kind: 'dots',
      title: 'Processor time against bare uWebSockets.js, one dot per round',
      unit: 'x',
      rows: goals.map((goal, n) => ({
        label: COMPARED[n]!.name,
        values: times[n]!,
        goal: goal.value,
        direction: goal.direction,
      })),
    },
    barsOf('Checks a second, one worker on one core', 'checks/s', contenders, (name) =>
      column(rounds, name, 'perSecond'),
    ),
    barsOf('Processor time of the server per response', 'us', contenders, (name) => column(rounds, name, 'cpuUs')),
  ]
  const cpu = COMPARED.map(({ name }, n) => ({
    name,
    timesTheCeiling: summarize(times[n]!),
    throughputOfTheCeiling: summarize(throughput[n]!),
  }))
  for (const { name, timesTheCeiling } of cpu) {
    const us = summarize(column(rounds, name, 'cpuUs')).median
    bench.log(
      `${name}: ${us.toFixed(2)} us of processor time per response, ${timesTheCeiling.median.toFixed(2)} x the ceiling`,
    )
  }
  return {
    title: 'Known machines, against the ceiling',
    question: 'How much more processor time does a verdict take than a constant response of the socket library?',
    headlines: [headlineOf(rounds)],
    goals,
    charts,
    notes: [
      'The ceiling reads the body and sends the bytes of a valid verdict. It receives the same requests.',
      'The checks are of 200,000 licenses spread over the whole index, so they do not fit into a cache. The first row has 1,000.',
    ],
    figures: { rounds: Object.fromEntries(rounds), summaries: describeRounds(rounds), cpu },
  }
}
