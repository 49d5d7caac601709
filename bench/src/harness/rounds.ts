/**
 * Measures throughput in rounds that alternate between contenders. Each round measures every contender for a few
 * seconds, in a rotating order, so that disturbances of the machine affect all of them alike.
 */

import type { Check } from '../load/checks.ts'
import { preflight } from '../load/preflight.ts'
import { runWrk, writeWrkChecks, type WrkOutcome } from '../load/wrk.ts'
import { loadPrefix } from './cores.ts'
import type { Bench } from './scenario.ts'
import type { Server } from './servers.ts'
import { ratios, summarize } from './stats.ts'
import { cpuMs } from './usage.ts'

export interface Contender {
  name: string
  server: Server
  checks: readonly Check[]
  /** Returns processes whose processor time is added to the server's, such as those of Postgres. */
  helpers?: () => number[]
  /** Runs before each turn, for example to move Postgres to another core. */
  prepare?: () => void
  /** The number of checks in each request, 1 when absent. Figures are per check, except the latencies. */
  batchSize?: number
  /** Whether the server sends a constant response, so that no sample of the responses is verified. */
  constant?: boolean
}

interface RoundFigure {
  perSecond: number
  /** The processor time of the server and its helpers per check, or null if the system does not report it. */
  cpuUs: number | null
  p50Us: number
  p99Us: number
  /** `WrkOutcome.naps` per second. */
  napsPerSecond: number | null
}

export type Rounds = Map<string, RoundFigure[]>

/** Runs a warm-up round, which does not count, and then all rounds. Logs the figures of each contender. */
export async function alternate(contenders: readonly Contender[], bench: Bench): Promise<Rounds> {
  const prepared = contenders.map((contender) => ({
    ...contender,
    file: writeWrkChecks(contender.checks, 'v2', contender.batchSize),
  }))
  const rounds: Rounds = new Map(contenders.map(({ name }) => [name, []]))
  try {
    for (const contender of prepared) await verify(contender)
    for (let round = -1; round < bench.rounds; round += 1) {
      for (let turn = 0; turn < prepared.length; turn += 1) {
        const contender = prepared[(turn + Math.max(0, round)) % prepared.length]
        if (contender === undefined) continue
        bench.signal.throwIfAborted()
        const figure = await measure(contender, contender.file.path, bench)
        if (round >= 0) rounds.get(contender.name)?.push(figure)
      }
      if (round >= 0) bench.log(`round ${round + 1} of ${bench.rounds}`)
    }
  } finally {
    for (const { file } of prepared) file.remove()
  }
  for (const [name, figures] of rounds) bench.log(`${name}: ${describe(figures)}`)
  return rounds
}

/** Returns one figure of every round. Throws if the system did not report the figure. */
export function column(rounds: Rounds, name: string, figure: keyof RoundFigure): number[] {
  return rounds.get(name)!.map((round) => {
    const value = round[figure]
    if (value === null) throw new Error(`this system does not report ${figure}`)
    return value
  })
}

/** Divides a figure of one contender by that of another, which was measured in the same round. */
export function compare(rounds: Rounds, figure: keyof RoundFigure, name: string, against: string): number[] {
  return ratios(column(rounds, name, figure), column(rounds, against, figure))
}

function describe(figures: readonly RoundFigure[]): string {
  const perSecond = Math.round(summarize(figures.map((one) => one.perSecond)).median).toLocaleString('en-US')
  const times = figures.map(({ cpuUs }) => cpuUs).filter((value) => value !== null)
  if (times.length === 0) return `${perSecond} checks a second`
  const { median, min, max } = summarize(times)
  return `${perSecond} checks a second, ${median.toFixed(2)} us of processor time per check (${min.toFixed(2)} to ${max.toFixed(2)})`
}

/** Throws unless a sample of the checks gets the expected verdicts. */
async function verify(contender: Contender): Promise<void> {
  if (contender.constant === true) return
  const surprises = await preflight(contender.server.url, contender.checks.slice(0, 50), 'v2')
  if (surprises.length > 0) throw new Error(`${contender.name}: ${surprises.join('; ')}`)
}

async function measure(contender: Contender, checksFile: string, bench: Bench): Promise<RoundFigure> {
  contender.prepare?.()
  const { roundMs: durationMs, connections, signal, plan } = bench
  const { pid, url } = contender.server
  const before = new Map([pid, ...(contender.helpers?.() ?? [])].map((each) => [each, cpuMs(each)]))
  const options = { url, checksFile, connections, durationMs, signal, naps: true }
  const outcome = await runWrk({ ...options, threads: plan.load.length, prefix: loadPrefix(plan) })
  bench.signal.throwIfAborted()
  rejectFailures(contender, outcome)
  const used = usedMs(before)
  const size = contender.batchSize ?? 1
  return {
    perSecond: outcome.perSecond * size,
    cpuUs: before.get(pid) === null ? null : (used * 1000) / (outcome.requests * size),
    p50Us: outcome.latency.percentilesUs['50']!,
    p99Us: outcome.latency.percentilesUs['99']!,
    napsPerSecond: outcome.naps === null ? null : (outcome.naps * 1000) / outcome.durationMs,
  }
}

/** Returns the processor time since `before` in milliseconds. A process that has ended meanwhile, such as a Postgres backend, counts 0. */
function usedMs(before: ReadonlyMap<number, number | null>): number {
  let sum = 0
  for (const [pid, was] of before) sum += Math.max(0, (cpuMs(pid) ?? 0) - (was ?? 0))
  return sum
}

/** Throws if more than one response in a thousand failed. */
function rejectFailures({ name }: Contender, { statuses, errors, requests }: WrkOutcome): void {
  const failed = Object.values(errors).reduce((sum, count) => sum + count, statuses['4xx-5xx'] ?? 0)
  if (failed > requests / 1000)
    throw new Error(`${name}: ${failed} of ${requests} responses failed: ${JSON.stringify(errors)}`)
}
