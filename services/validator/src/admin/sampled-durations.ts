/**
 * Exposes the durations of checks as a Prometheus histogram. The workers count into buckets in shared memory, and this class
 * adds up their buckets at each scrape. The `Histogram` of prom-client would have to receive every duration.
 */

import { Histogram } from 'prom-client'

import { type Counters, DURATION_BOUNDS } from '../shared/counters.ts'

const NAME = 'keyward_check_duration_seconds'

type Snapshot = Awaited<ReturnType<Histogram['get']>>

export class SampledDurations extends Histogram {
  readonly #totals: () => Counters

  constructor(totals: () => Counters) {
    super({
      name: NAME,
      help: 'Time from the headers of a request to its verdict, for every 64th check.',
      buckets: [...DURATION_BOUNDS],
      registers: [],
    })
    this.#totals = totals
  }

  override async get(): Promise<Snapshot> {
    const { buckets, sum } = this.#totals().durations()
    const values: Snapshot['values'] = []
    let count = 0
    for (const [i, inBucket] of buckets.entries()) {
      count += inBucket
      // The last bucket has no upper bound.
      values.push({ metricName: `${NAME}_bucket`, labels: { le: DURATION_BOUNDS[i] ?? '+Inf' }, value: count })
    }
    values.push({ metricName: `${NAME}_sum`, labels: {}, value: sum })
    values.push({ metricName: `${NAME}_count`, labels: {}, value: count })
    return Object.assign(await super.get(), { values })
  }
}
