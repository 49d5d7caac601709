import type { LoadOutcome } from './outcome.ts'

/** Returns the outcome as lines of text. */
export function formatOutcome(outcome: LoadOutcome): string {
  const { latency } = outcome
  const target = outcome.targetPerSecond === null ? '' : ` (target ${formatCount(outcome.targetPerSecond)})`
  const percentiles = Object.entries(latency.percentilesUs).map(([p, us]) => `p${p} ${formatUs(us)}`)
  const lines = [
    `${formatCount(outcome.perSecond)} checks/s${target}, ${formatCount(outcome.requests)} in ${(outcome.durationMs / 1000).toFixed(1)} s, ${outcome.generator}`,
    `latency   ${[...percentiles, `max ${formatUs(latency.maxUs)}`].join('   ')}`,
    ...(outcome.codes === null ? [] : [`codes     ${formatShares(outcome.codes)}`]),
    `statuses  ${formatShares(outcome.statuses)}`,
    `errors    ${formatShares(outcome.errors)}`,
  ]
  return lines.join('\n')
}

export function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** Formats microseconds as us, ms or s. */
export function formatUs(us: number): string {
  if (us < 1000) return `${us.toFixed(0)} us`
  if (us < 1_000_000) return `${(us / 1000).toFixed(2)} ms`
  return `${(us / 1_000_000).toFixed(2)} s`
}

function formatShares(counts: Record<string, number>): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  if (total === 0) return 'none'
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${formatCount(count)} (${((100 * count) / total).toFixed(1)} %)`)
    .join('   ')
}
