/** Divides a run into intervals of equal length, so that a report can show how the run went over time. */

import { LatencyHistogram } from './histogram.ts'

const INTERVALS = 60
const MIN_INTERVAL_MS = 200

export interface Interval {
  /** The time from the begin of the measurement to the begin of the interval. */
  startMs: number
  lengthMs: number
  responses: number
  /** The number of requests that failed in the interval without a response. */
  failures: number
  /** The latencies of the requests that were due in the interval, or null if none got a response. */
  latencyUs: { p50: number; p99: number; max: number } | null
}

export class Timeline {
  readonly #durationMs: number
  readonly #lengthMs: number
  readonly #latencies: LatencyHistogram[]
  readonly #failures: number[]

  constructor(durationMs: number) {
    this.#durationMs = durationMs
    this.#lengthMs = Math.max(MIN_INTERVAL_MS, durationMs / INTERVALS)
    const count = Math.max(1, Math.ceil(durationMs / this.#lengthMs))
    this.#latencies = Array.from({ length: count }, () => new LatencyHistogram())
    this.#failures = Array.from({ length: count }, () => 0)
  }

  /** Records a response to a request that was due at `atMs` after the begin of the measurement. */
  responded(atMs: number, latencyUs: number): void {
    this.#latencies[this.#indexOf(atMs)]?.record(latencyUs)
  }

  failed(atMs: number): void {
    const index = this.#indexOf(atMs)
    this.#failures[index] = (this.#failures[index] ?? 0) + 1
  }

  /** Returns the intervals up to `endMs`, at which the run ended or was stopped. */
  intervals(endMs: number): Interval[] {
    return this.#latencies.flatMap((latency, index) => {
      const startMs = index * this.#lengthMs
      const lengthMs = Math.min(this.#lengthMs, Math.min(endMs, this.#durationMs) - startMs)
      if (lengthMs <= 0) return []
      const [p50, p99] = [latency.percentileUs(50), latency.percentileUs(99)]
      const latencyUs = latency.count === 0 ? null : { p50, p99, max: latency.summary().maxUs }
      return [{ startMs, lengthMs, responses: latency.count, failures: this.#failures[index] ?? 0, latencyUs }]
    })
  }

  /** A request that fails after the end counts in the last interval. */
  #indexOf(atMs: number): number {
    return Math.min(Math.max(0, Math.floor(atMs / this.#lengthMs)), this.#latencies.length - 1)
  }
}
