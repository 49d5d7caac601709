/** A latency histogram in microseconds. It has 128 linear steps per power of two, so a percentile is at most 0.8 % or 1 us too high. */

const STEP_BITS = 7
const STEPS = 1 << STEP_BITS
/** The number of powers of two after the first 128 buckets. The last one ends at 2^37 us (38 hours), longer than any run. */
const POWERS = 30
const PERCENTILES = [50, 75, 90, 99, 99.9, 99.99] as const

export interface LatencySummary {
  count: number
  meanUs: number
  maxUs: number
  /** The latency in microseconds by percentile. The keys are `"50"` to `"99.99"`. */
  percentilesUs: Record<string, number>
}

export class LatencyHistogram {
  readonly #counts = new Float64Array(STEPS * (POWERS + 1))
  #count = 0
  #sumUs = 0
  #maxUs = 0

  get count(): number {
    return this.#count
  }

  record(latencyUs: number): void {
    const value = Math.max(0, latencyUs)
    this.#counts[bucketOf(value)]! += 1
    this.#count += 1
    this.#sumUs += value
    this.#maxUs = Math.max(this.#maxUs, value)
  }

  /**
   * Returns a latency that at least `percentile` percent of the responses did not exceed: the upper bound of a bucket, or the maximum if
   * that is lower. Returns 0 without responses.
   */
  percentileUs(percentile: number): number {
    if (this.#count === 0) return 0
    const wanted = Math.max(1, Math.ceil((percentile / 100) * this.#count - 1e-9))
    let seen = 0
    for (let bucket = 0; bucket < this.#counts.length; bucket += 1) {
      seen += this.#counts[bucket]!
      if (seen >= wanted) return Math.min(upperBoundUs(bucket), this.#maxUs)
    }
    return this.#maxUs
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

/** Returns the bucket of a value. Buckets 0 to 127 are 1 us wide. Every further group of 128 covers a power of two. */
function bucketOf(valueUs: number): number {
  if (valueUs < STEPS) return Math.floor(valueUs)
  const power = Math.min(Math.floor(Math.log2(valueUs)) - STEP_BITS, POWERS - 1)
  const step = Math.min(Math.floor(valueUs / 2 ** power) - STEPS, STEPS - 1)
  return STEPS * (power + 1) + step
}

function upperBoundUs(bucket: number): number {
  if (bucket < STEPS) return bucket + 1
  const power = Math.floor(bucket / STEPS) - 1
  return (STEPS + (bucket % STEPS) + 1) * 2 ** power
}
