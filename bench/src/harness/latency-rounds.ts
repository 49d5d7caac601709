import type { Check } from '../load/checks.ts'
import { runAtRate } from '../load/fixed-rate.ts'
import type { LatencySummary } from '../load/histogram.ts'
import type { LoadOutcome } from '../load/outcome.ts'
import { createSupply } from '../load/supply.ts'
import { asGenerator } from './cores.ts'
import { alternate, column } from './rounds.ts'
import type { Bench } from './scenario.ts'
import type { Server } from './servers.ts'
import { summarize } from './stats.ts'

export interface LatencyContender {
  name: string
  server: Server
  checks: readonly Check[]
  prepare?: () => void
}

export interface Rate {
  perSecond: number
  /** The number of responses a second when requests are sent without a rate limit. */
  peakPerSecond: number
  /** Whether the rate is lower than half of the peak, because the generator's own delays would hide the server's. */
  limitedByGenerator: boolean
}

const SETTLE_MS = 500
/** The median latency of the ceiling above which the generator's own delay dominates. */
const GENERATOR_LIMIT_US = 300
/** The time that a generator with priority sleeps between sends. */
const SLEEP_US = 1_000

/**
 * Returns half of the server's peak rate. If the generator delays checks at this rate, lowers the rate in steps of 15 %, at most eight
 * times.
 */
export async function findRate(server: Server, ceiling: Server, checks: readonly Check[], bench: Bench): Promise<Rate> {
  const short = { ...bench, rounds: 3, roundMs: Math.min(bench.roundMs, 2000), log: () => undefined }
  const peakPerSecond = summarize(
    column(await alternate([{ name: 'peak', server, checks }], short), 'peak', 'perSecond'),
  ).median
  const limitUs = GENERATOR_LIMIT_US + (bench.plan.loadFirst ? SLEEP_US : 0)
  let perSecond = peakPerSecond / 2
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const { latency, errors } = await pace({ name: 'ceiling', server: ceiling, checks }, perSecond, 1000, bench)
    if (latency.percentilesUs['50']! < limitUs && Object.keys(errors).length === 0) break
    perSecond *= 0.85
  }
  return { perSecond, peakPerSecond, limitedByGenerator: perSecond < peakPerSecond / 2 }
}

/** Runs all rounds like `alternate`, but at a fixed rate. Throws if a response is not VALID. */
export async function alternateAtRate(
  contenders: readonly LatencyContender[],
  perSecond: number,
  bench: Bench,
): Promise<Map<string, LatencySummary[]>> {
  const rounds = new Map<string, LatencySummary[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < bench.rounds; round += 1) {
    for (let turn = 0; turn < contenders.length; turn += 1) {
      const contender = contenders[(turn + round) % contenders.length]
      if (contender === undefined) continue
      rounds.get(contender.name)?.push(await takeTurn(contender, perSecond, bench.roundMs, bench))
    }
    const medians = [...rounds].map(([name, list]) => {
      const p99 = summarize(list.map(({ percentilesUs }) => percentilesUs['99']!)).median
      return `${name} p99 ${p99.toFixed(0)} us`
    })
    bench.log(`round ${round + 1}/${bench.rounds}   ${medians.join('   ')}`)
  }
  return rounds
}

/** Measures one contender once. Throws if a response is not VALID. */
export async function takeTurn(
  contender: LatencyContender,
  perSecond: number,
  durationMs: number,
  bench: Bench,
): Promise<LatencySummary> {
  bench.signal.throwIfAborted()
  contender.prepare?.()
  const outcome = await pace(contender, perSecond, durationMs, bench)
  bench.signal.throwIfAborted()
  const wrong = Object.entries(outcome.codes ?? {}).filter(([code]) => code !== 'VALID')
  if (wrong.length > 0) throw new Error(`${contender.name}: responses that are not VALID: ${JSON.stringify(wrong)}`)
  return outcome.latency
}

/** Returns the points of a chart. x is 1 / (1 - percentile / 100), and y is the median latency of the rounds in us. */
export function percentileSeries(rounds: readonly LatencySummary[]): [number, number][] {
  const names = Object.keys(rounds[0]?.percentilesUs ?? {})
  return names.map((name) => {
    const latency = summarize(rounds.map(({ percentilesUs }) => percentilesUs[name]!)).median
    return [1 / (1 - Number(name) / 100), latency]
  })
}

function pace(
  contender: LatencyContender,
  ratePerSecond: number,
  durationMs: number,
  bench: Bench,
): Promise<LoadOutcome> {
  const { connections, plan, signal } = bench
  const { url } = contender.server
  const nextRequest = createSupply(contender.checks, 'v2', url)
  const options = { url, nextRequest, ratePerSecond, connections, durationMs, warmUpMs: SETTLE_MS, signal }
  return asGenerator(plan, () => runAtRate({ ...options, sleeps: plan.loadFirst }))
}
