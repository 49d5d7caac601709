/**
 * The time that checks took, as a Prometheus histogram. The workers count into buckets in shared memory; here the buckets
 * are only added up and shown, which prom-client's own histogram, fed value by value, cannot do.
 */

import { Histogram } from 'prom-client'

import { type Counters, DURATION_BOUNDS } from '../shared/counters.ts'

const NAME = 'keyward_check_duration_seconds'

type Shown = Awaited<ReturnType<Histogram['get']>>

export class SampledDurations extends Histogram {
  readonly #totals: () => Counters

  constructor(totals: () => Counters) {
    super({
      name: NAME,
      help: 'From the head of a request to its verdict, of every 64th check.',
      buckets: [...DURATION_BOUNDS],
      registers: [],
    })
    this.#totals = totals
  }

  override async get(): Promise<Shown> {
    const { buckets, sum } = this.#totals().durations()
    const values: Shown['values'] = []
    let count = 0
    for (const [i, inBucket] of buckets.entries()) {
      count += inBucket
      values.push({ metricName: `${NAME}_bucket`, labels: { le: DURATION_BOUNDS[i] ?? '+Inf' }, value: count })
    }
    values.push({ metricName: `${NAME}_sum`, labels: {}, value: sum })
    values.push({ metricName: `${NAME}_count`, labels: {}, value: count })
    return Object.assign(await super.get(), { values })
  }
}
