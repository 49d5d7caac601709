/** Explains the outcome of `npm run bench` in sentences, for readers who have never measured a validator. */

import type { LoadOutcome } from './outcome.ts'
import { formatCount, formatUs } from './print.ts'

export interface Measured {
  /** The run that was requested. */
  run: LoadOutcome
  /** A run at half of the throughput of the requested run, or null if it was not measured. */
  half: LoadOutcome | null
}

/** The throughput in checks a second above which the generator in JavaScript may be slower than the server. */
const GENERATOR_LIMIT = 50_000
/** A fixed rate counts as reached if the throughput is at least this share of it. */
const REACHED = 0.99

/** Returns one sentence per line. */
export function explain({ run, half }: Measured): string {
  const lines = [describeThroughput(run), ...describeFailures(run)]
  const quiet = half ?? (run.targetPerSecond === null ? null : run)
  if (quiet !== null) lines.push(describeLatency(quiet, half !== null))
  if (run.generator === 'as-fast-as-possible' && run.perSecond > GENERATOR_LIMIT)
    lines.push('The load generator was probably the limit. Install wrk and add --wrk to measure a faster validator.')
  return lines.join('\n')
}

function describeThroughput({ perSecond, requests, codes, targetPerSecond, rampToPerSecond }: LoadOutcome): string {
  const rejected = codes === null ? 0 : requests - (codes['VALID'] ?? 0)
  const verdicts =
    codes === null || rejected === 0 ? '' : ` ${formatShare(rejected / requests)} of them were not VALID.`
  if (targetPerSecond === null) return `Your validator decided ${formatCount(perSecond)} checks a second.${verdicts}`
  if (perSecond >= REACHED * targetPerSecond && rampToPerSecond !== undefined) {
    const from = formatCount(2 * targetPerSecond - rampToPerSecond)
    return `Your validator decided all checks while the rate went from ${from} to ${formatCount(rampToPerSecond)} a second.${verdicts}`
  }
  if (perSecond >= REACHED * targetPerSecond)
    return `Your validator decided all of the ${formatCount(targetPerSecond)} checks a second.${verdicts}`
  return `Your validator decided only ${formatCount(perSecond)} of ${formatCount(targetPerSecond)} checks a second.${verdicts}`
}

function describeLatency({ latency, perSecond, rampToPerSecond }: LoadOutcome, isHalf: boolean): string {
  const rate = isHalf
    ? `At half of that, ${formatCount(perSecond)} checks a second`
    : rampToPerSecond === undefined
      ? 'At this rate'
      : 'During the ramp'
  const [median, p99] = [latency.percentilesUs['50'] ?? 0, latency.percentilesUs['99'] ?? 0]
  return `${rate}, half of the responses arrived within ${formatUs(median)}, and 99 of 100 within ${formatUs(p99)}.`
}

function describeFailures({ statuses, errors, requests }: LoadOutcome): string[] {
  const failed = Object.values(errors).reduce((sum, count) => sum + count, 0)
  const unavailable = Object.entries(statuses).reduce((sum, [status, count]) => sum + (status >= '500' ? count : 0), 0)
  return [
    ...(failed === 0 ? [] : [`${formatCount(failed)} requests failed without a response.`]),
    ...(unavailable === 0
      ? []
      : [`${formatShare(unavailable / requests)} of the responses were errors of the server.`]),
  ]
}

function formatShare(share: number): string {
  const percent = 100 * share
  return `${percent < 0.1 && percent > 0 ? 'less than 0.1' : percent.toFixed(1)} %`
}
