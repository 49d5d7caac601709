/** Compares the outcome of a load run with the limits that the caller has set, so that a pipeline can reject a slow version. */

import type { LoadOutcome } from './outcome.ts'

export interface Thresholds {
  maxP99Ms: number | null
  minPerSecond: number | null
  /** The maximum percentage of requests without a response or with a status of 500 or more. */
  maxFailuresPercent: number | null
}

/** Returns a sentence for each limit that the outcome misses. */
export function missedThresholds(outcome: LoadOutcome, limits: Thresholds): string[] {
  const { latency, perSecond, statuses, errors } = outcome
  const p99Ms = (latency.percentilesUs['99'] ?? Infinity) / 1000
  const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)
  const lost = sum(Object.values(errors))
  const failed =
    lost + sum(Object.entries(statuses).flatMap(([status, count]) => (status.startsWith('5') ? [count] : [])))
  const percent = (100 * failed) / Math.max(1, lost + sum(Object.values(statuses)))
  const missed: string[] = []
  if (limits.maxP99Ms !== null && p99Ms > limits.maxP99Ms)
    missed.push(`p99 is ${p99Ms.toFixed(2)} ms; --max-p99 is ${limits.maxP99Ms}`)
  if (limits.minPerSecond !== null && perSecond < limits.minPerSecond)
    missed.push(`${Math.round(perSecond)} checks a second arrived; --min-rate is ${limits.minPerSecond}`)
  if (limits.maxFailuresPercent !== null && percent > limits.maxFailuresPercent)
    missed.push(`${percent.toFixed(3)} % of the checks failed; --max-failures is ${limits.maxFailuresPercent}`)
  return missed
}
