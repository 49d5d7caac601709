/**
 * Measures latency at half of the peak rate: of the ceiling, of Keyward, and of Keyward while rules change and license files are requested.
 * The latency of a check begins when the check is due.
 */

import { fileURLToPath } from 'node:url'

import { startChild } from '../harness/children.ts'
import { pinPrefix, pinTree } from '../harness/cores.ts'
import { judge } from '../harness/goals.ts'
import { knownChecks, CHECK_COUNT, shapeFor } from '../harness/known-checks.ts'
import {
  findRate,
  alternateAtRate,
  percentileSeries,
  takeTurn,
  type LatencyContender,
} from '../harness/latency-rounds.ts'
import { startManagement } from '../harness/management-api.ts'
import { openShape } from '../harness/postgres.ts'
import type { Outcome, Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const CHANGES_PER_SECOND = 100
/** The number of requests that 432,000 installations cause if each requests a file once a day. */
const FILES_PER_SECOND = 5
/** The time in which V8 optimizes the code that applies changes, on the core that serves checks. */
const WARM_UP_MS = 60_000
const CHANGER = fileURLToPath(new URL('../harness/rule-changer.ts', import.meta.url))
const FILE_REQUESTER = fileURLToPath(new URL('../harness/file-requester.ts', import.meta.url))
const QUIET = 'Keyward, quiet'
const CHANGING = `Keyward, ${CHANGES_PER_SECOND} rules a second change, ${FILES_PER_SECOND} files a second`

export const latency: Scenario = {
  name: 'latency',
  summary: 'p99 at half of the peak rate, quiet and while rules change and files are requested, against the ceiling',
  run: async (bench) => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    // In quiet rounds, rules change in a database without a validator, so that Postgres takes the same share of the machine.
    const elsewhereUrl = await openShape(bench.postgres, shapeFor(bench, 1000, 10), bench.log)
    const ceiling = await startBaseline('ceiling', databaseUrl, bench.plan)
    const keyward = await startKeyward(databaseUrl, bench.plan)
    const changer = await startChild({
      file: CHANGER,
      env: { RULE_CHANGES: String(CHANGES_PER_SECOND) },
      prefix: pinPrefix(bench.plan.postgres, bench.plan),
    })
    const management = await startManagement(databaseUrl)
    pinTree(management.pid, bench.plan.postgres, bench.plan)
    const requester = await startChild({
      file: FILE_REQUESTER,
      env: {
        DATABASE_URL: databaseUrl,
        MANAGEMENT_PORT: String(management.port),
        FILE_REQUESTS: String(FILES_PER_SECOND),
      },
      prefix: pinPrefix(bench.plan.postgres, bench.plan),
    })
    const disturb = (changedUrl: string, files: 'start' | 'stop') => (): void => {
      changer.send(changedUrl)
      requester.send(files)
    }
    try {
      const checks = knownChecks(shape, { count: CHECK_COUNT / 4, addressRules: true })
      const rate = await findRate(keyward, ceiling, checks, bench)
      const changing = { name: CHANGING, server: keyward, checks, prepare: disturb(databaseUrl, 'start') }
      const contenders: LatencyContender[] = [
        { name: 'ceiling', server: ceiling, checks, prepare: disturb(elsewhereUrl, 'stop') },
        { name: QUIET, server: keyward, checks, prepare: disturb(elsewhereUrl, 'stop') },
        changing,
      ]
      const warmUpMs = bench.quick ? 500 : WARM_UP_MS
      await takeTurn(changing, rate.perSecond, warmUpMs, bench)
      const rounds = await alternateAtRate(contenders, rate.perSecond, bench)
      return describe(rounds, rate, warmUpMs, requester.lines)
    } finally {
      await requester.stop()
      await Promise.all([ceiling.stop(), keyward.stop(), changer.stop(), management.stop()])
    }
  },
}

function describe(
  rounds: Awaited<ReturnType<typeof alternateAtRate>>,
  rate: Awaited<ReturnType<typeof findRate>>,
  warmUpMs: number,
  failures: readonly string[],
): Outcome {
  const p99 = (name: string): number[] => rounds.get(name)!.map(({ percentilesUs }) => percentilesUs['99']!)
  const againstCeiling = ratios(p99(QUIET), p99('ceiling'))
  const changing = ratios(p99(CHANGING), p99(QUIET))
  return {
    title: 'Latency at half of the peak rate',
    question: 'How long does a check take at half load, and while rules change and files are requested?',
    headlines: [
      {
        figure: `${(summarize(p99(CHANGING)).median / 1000).toFixed(1)} ms`,
        text: 'for 99 of 100 checks at half of the peak rate, while 100 rules change and five license files are requested a second',
      },
    ],
    goals: [judge('p99', summarize(againstCeiling)), judge('p99Changing', summarize(changing))],
    charts: [
      {
        kind: 'lines',
        title: `Latency at ${Math.round(rate.perSecond).toLocaleString('en-US')} checks a second, median of the rounds`,
        x: { label: 'percent of all checks', log: true, ticks: PERCENTILE_TICKS },
        y: { label: 'us', log: true },
        series: [...rounds.keys()].map((name) => ({
          label: name,
          ours: name !== 'ceiling',
          points: percentileSeries(rounds.get(name)!),
        })),
      },
      {
        kind: 'dots',
        title: 'p99, one dot per round',
        unit: 'x',
        rows: [
          { label: 'quiet / ceiling', values: againstCeiling, goal: 1.5, direction: 'at most' },
          { label: 'changing / quiet', values: changing, goal: 1.2, direction: 'at most' },
        ],
      },
    ],
    notes: [
      `Peak ${Math.round(rate.peakPerSecond).toLocaleString('en-US')}/s; ${rate.limitedByGenerator ? 'the generator, not the server, set the rate' : 'the rate is half of it'}.`,
      `Rules change and files are requested for ${warmUpMs / 1000} s before the measurement, until V8 has optimized the code.`,
      'Every latency is measured from the time at which the check was due, so a stall counts for every check that waited.',
      "On two cores, Postgres and the program that changes rules share the generator's core in all rounds. As root, the generator has priority over them and sleeps a millisecond between sends, which every figure includes. Otherwise they delay the generator.",
      ...failures,
    ],
    figures: { rate, rounds: Object.fromEntries(rounds) },
  }
}

/** The ticks at 1 / (1 - p), so that the distances between 90, 99 and 99.9 are equal. */
const PERCENTILE_TICKS = ['50', '90', '99', '99.9', '99.99'].map((text) => ({ at: 1 / (1 - Number(text) / 100), text }))
