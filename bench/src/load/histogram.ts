/** Records latencies in microseconds. A percentile is at most 0.1 % too high, and never above the largest latency. */

import { createHistogram } from 'node:perf_hooks'

const PERCENTILES = [50, 75, 90, 99, 99.9, 99.99] as const

export interface LatencySummary {
  count: number
  meanUs: number
  maxUs: number
  /** The latency in microseconds by percentile. The keys are `"50"` to `"99.99"`. */
  percentilesUs: Record<string, number>
}

export class LatencyHistogram {
  /** The latencies in nanoseconds, because the histogram accepts only whole numbers. */
  readonly #histogram = createHistogram({ figures: 3 })
  #count = 0
  #sumUs = 0
  #maxUs = 0

  get count(): number {
    return this.#count
  }

  record(latencyUs: number): void {
    this.#histogram.record(Math.min(Math.max(1, Math.round(latencyUs * 1000)), Number.MAX_SAFE_INTEGER))
    this.#count += 1
    this.#sumUs += latencyUs
    this.#maxUs = Math.max(this.#maxUs, latencyUs)
  }

  /** Returns a latency that at least `percentile` percent of the responses did not exceed, or 0 without responses. */
  percentileUs(percentile: number): number {
    return this.#count === 0 ? 0 : Math.min(this.#histogram.percentile(percentile) / 1000, this.#maxUs)
  }

  summary(): LatencySummary {
    return {
      count: this.#count,
      meanUs: this.#count === 0 ? 0 : this.#sumUs / this.#count,
      maxUs: this.#maxUs,
      percentilesUs: Object.fromEntries(PERCENTILES.map((p) => [String(p), this.percentileUs(p)])),
    }
  }
}
