// A latency histogram in microseconds: 128 linear steps inside every power of two, so a percentile is off by less
// than 0.8 % whatever its size. Recording is two shifts and an addition, cheap enough to do for every answer.

const STEP_BITS = 7
const STEPS = 1 << STEP_BITS
const POWERS = 30 // up to 2^36 us, far longer than any run
const PERCENTILES = [50, 75, 90, 99, 99.9, 99.99] as const

export interface LatencySummary {
  count: number
  meanUs: number
  maxUs: number
  /** Keyed by percentile, `"99.9"` for instance; microseconds. */
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
    const value = latencyUs < 0 ? 0 : latencyUs
    this.#add(value, 1)
  }

  merge(other: LatencyHistogram): void {
    other.#counts.forEach((count, bucket) => {
      this.#counts[bucket] = (this.#counts[bucket] ?? 0) + count
    })
    this.#count += other.#count
    this.#sumUs += other.#sumUs
    this.#maxUs = Math.max(this.#maxUs, other.#maxUs)
  }

  /** The smallest latency that at least `percentile` per cent of the answers did not pass; 0 when there are none. */
  percentileUs(percentile: number): number {
    if (this.#count === 0) return 0
    const wanted = Math.max(1, Math.ceil((percentile / 100) * this.#count - 1e-9))
    let seen = 0
    for (let bucket = 0; bucket < this.#counts.length; bucket += 1) {
      seen += this.#counts[bucket] ?? 0
      if (seen >= wanted) return Math.min(upperBoundUs(bucket), this.#maxUs)
    }
    return this.#maxUs
  }

  /** How many answers took longer than `latencyUs`, to the precision of a bucket. */
  countAbove(latencyUs: number): number {
    let count = 0
    for (let bucket = bucketOf(latencyUs) + 1; bucket < this.#counts.length; bucket += 1) {
      count += this.#counts[bucket] ?? 0
    }
    return count
  }

  summary(): LatencySummary {
    return {
      count: this.#count,
      meanUs: this.#count === 0 ? 0 : this.#sumUs / this.#count,
      maxUs: this.#maxUs,
      percentilesUs: Object.fromEntries(PERCENTILES.map((p) => [String(p), this.percentileUs(p)])),
    }
  }

  #add(valueUs: number, times: number): void {
    const bucket = bucketOf(valueUs)
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + times
    this.#count += times
    this.#sumUs += valueUs * times
    if (valueUs > this.#maxUs) this.#maxUs = valueUs
  }
}

// Buckets 0..127 are one microsecond wide; every further group of 128 spans one more power of two.
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
