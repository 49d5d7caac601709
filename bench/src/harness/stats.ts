export interface Summary {
  median: number
  min: number
  max: number
  /** The quartiles. Half of the values are between them. */
  low: number
  high: number
  rounds: number
}

/** Returns the median and the spread. Throws when there are no values. */
export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new Error('there are no values to summarize')
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    min: sorted[0]!,
    max: sorted.at(-1)!,
    low: quantile(sorted, 0.25),
    high: quantile(sorted, 0.75),
    rounds: sorted.length,
  }
}

/**
 * Divides the first value of each round by the second. Disturbances of the machine affect both values of a round, so they mostly cancel
 * out.
 */
export function ratios(values: readonly number[], against: readonly number[]): number[] {
  return values.slice(0, against.length).map((value, round) => value / against[round]!)
}

export interface Percentiles {
  p50: number
  p99: number
  max: number
}

/** Returns the 50th and the 99th percentile and the maximum, to two decimals. They are 0 without values. */
export function percentiles(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round((sorted[Math.ceil(share * sorted.length) - 1] ?? 0) * 100) / 100
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

/** Interpolates linearly between the two nearest of the sorted values. */
function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)]!
  const above = sorted[Math.ceil(place)]!
  return below + (above - below) * (place - Math.floor(place))
}
