import type { Chart } from '../report/chart.ts'
import { summarize } from './stats.ts'

/** Returns one bar per contender. A contender with `constant` is not Keyward and has a muted color. */
export function barsOf(
  title: string,
  unit: string,
  contenders: readonly { name: string; constant?: boolean }[],
  values: (name: string) => number[],
  log = false,
): Chart {
  return {
    kind: 'bars',
    title,
    unit,
    log,
    bars: contenders.map(({ name, constant }) => {
      const { median, low, high } = summarize(values(name))
      return { label: name, value: median, low, high, ours: constant !== true }
    }),
  }
}
