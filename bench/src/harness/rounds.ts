/**
 * Measures throughput in rounds that alternate between contenders. Each round measures every contender for a few
 * seconds, in a rotating order, so that disturbances of the machine affect all of them alike.
 */

import { runAutocannon } from '../load/autocannon.ts'
import type { Check } from '../load/checks.ts'
import type { LoadOutcome } from '../load/outcome.ts'
import { preflight } from '../load/preflight.ts'
import { hasWrk, runWrk, writeWrkChecks, type WrkOutcome } from '../load/wrk.ts'
import { loadPrefix } from './cores.ts'
import type { Bench } from './scenario.ts'
import type { Server } from './servers.ts'
import { summarize, type Summary } from './stats.ts'
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

export interface RoundFigure {
  perSecond: number
  /** The processor time of the server and its helpers per check, or null if the system does not report it. */
  cpuUs: number | null
  p50Us: number
  p99Us: number
  /** `WrkOutcome.naps` per second. */
  napsPerSecond: number | null
}

export type Rounds = Map<string, RoundFigure[]>

/** Throws if wrk is missing. It is the only generator that can send 100,000 checks a second. */
export function requireWrk(): void {
  if (hasWrk()) return
  throw new Error(
    'this scenario needs wrk, because autocannon is slower than the servers (Debian: apt-get install wrk)',
  )
}

/** Runs a warm-up round, which does not count, and then all rounds. */
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
      if (round >= 0) bench.log(progress(rounds, round + 1, bench.rounds))
    }
  } finally {
    for (const { file } of prepared) file.remove()
  }
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

export function describeRounds(rounds: Rounds): Record<string, Record<keyof RoundFigure, Summary | null>> {
  return Object.fromEntries(
    [...rounds.keys()].map((name) => {
      const of = (figure: keyof RoundFigure): Summary | null => {
        const values = rounds
          .get(name)!
          .map((round) => round[figure])
          .filter((value) => value !== null)
        return values.length === 0 ? null : summarize(values)
      }
      return [
        name,
        {
          perSecond: of('perSecond'),
          cpuUs: of('cpuUs'),
          p50Us: of('p50Us'),
          p99Us: of('p99Us'),
          napsPerSecond: of('napsPerSecond'),
        },
      ]
    }),
  )
}

/** Throws unless a sample of the checks gets the expected verdicts. */
async function verify(contender: Contender): Promise<void> {
  if (contender.constant === true) return
  const surprises = await preflight(contender.server.url, contender.checks.slice(0, 50), 'v2')
  if (surprises.length > 0) throw new Error(`${contender.name}: ${surprises.join('; ')}`)
}

async function measure(contender: Contender, checksFile: string, bench: Bench): Promise<RoundFigure> {
  contender.prepare?.()
  const { pid } = contender.server
  const before = new Map([pid, ...(contender.helpers?.() ?? [])].map((each) => [each, cpuMs(each)]))
  const outcome = await load(contender, checksFile, bench)
  bench.signal.throwIfAborted()
  rejectFailures(contender, outcome)
  const used = usedMs(before)
  const size = contender.batchSize ?? 1
  return {
    perSecond: outcome.perSecond * size,
    cpuUs: before.get(pid) === null ? null : (used * 1000) / (outcome.requests * size),
    p50Us: outcome.latency.percentilesUs['50']!,
    p99Us: outcome.latency.percentilesUs['99']!,
    napsPerSecond: typeof outcome.naps === 'number' ? (outcome.naps * 1000) / outcome.durationMs : null,
  }
}

/** Returns the processor time since `before` in milliseconds. A process that has ended meanwhile, such as a Postgres backend, counts 0. */
function usedMs(before: ReadonlyMap<number, number | null>): number {
  let sum = 0
  for (const [pid, was] of before) sum += Math.max(0, (cpuMs(pid) ?? 0) - (was ?? 0))
  return sum
}

function load(contender: Contender, checksFile: string, bench: Bench): Promise<LoadOutcome & Partial<WrkOutcome>> {
  const { connections, roundMs: durationMs, signal, plan } = bench
  const url = contender.server.url
  if (!hasWrk()) return runAutocannon({ url, checks: contender.checks, version: 'v2', connections, durationMs, signal })
  const threads = plan.load.length
  return runWrk({ url, checksFile, connections, durationMs, signal, threads, naps: true, prefix: loadPrefix(plan) })
}

function rejectFailures(contender: Contender, outcome: LoadOutcome): void {
  const failed =
    (outcome.statuses['4xx-5xx'] ?? 0) + Object.values(outcome.errors).reduce((sum, count) => sum + count, 0)
  if (failed > outcome.requests / 1000) {
    throw new Error(
      `${contender.name}: ${failed} of ${outcome.requests} responses failed: ${JSON.stringify(outcome.errors)}`,
    )
  }
}

function progress(rounds: Rounds, done: number, all: number): string {
  const figures = [...rounds].map(([name, list]) => {
    const median = Math.round(summarize(list.map(({ perSecond }) => perSecond)).median)
    return `${name} ${median.toLocaleString('en-US')}/s`
  })
  return `round ${done}/${all}   ${figures.join('   ')}`
}
