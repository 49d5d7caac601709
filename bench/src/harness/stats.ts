// What many rounds come to: the median, and how far they lie apart.

export interface Summary {
  median: number
  min: number
  max: number
  /** Quartiles: half of all rounds lie between them. */
  low: number
  high: number
  rounds: number
}

/** Throws when there is nothing to summarize: a figure made of no measurement is a lie. */
export function summarize(values: readonly number[]): Summary {
  if (values.length === 0) throw new Error('there is no round to summarize')
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    min: sorted[0] ?? 0,
    max: sorted.at(-1) ?? 0,
    low: quantile(sorted, 0.25),
    high: quantile(sorted, 0.75),
    rounds: sorted.length,
  }
}

/** Round n against round n, so that what slowed both (a busy neighbour, a hot processor) falls out. */
export function ratios(values: readonly number[], against: readonly number[]): number[] {
  return values.slice(0, against.length).map((value, round) => value / (against[round] ?? Number.NaN))
}

/** Linear between the two nearest of sorted values. */
function quantile(sorted: readonly number[], share: number): number {
  const place = (sorted.length - 1) * share
  const below = sorted[Math.floor(place)] ?? 0
  const above = sorted[Math.ceil(place)] ?? below
  return below + (above - below) * (place - Math.floor(place))
}
