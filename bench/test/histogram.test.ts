import { describe, expect, test } from 'vitest'

import { LatencyHistogram } from '../src/load/histogram.ts'

function histogramOf(values: Iterable<number>): LatencyHistogram {
  const histogram = new LatencyHistogram()
  for (const value of values) histogram.record(value)
  return histogram
}

function* upTo(count: number, step = 1): Generator<number> {
  for (let n = 1; n <= count; n += 1) yield n * step
}

describe('latency histogram', () => {
  test('returns 0 as percentile and mean when it is empty', () => {
    expect(histogramOf([]).percentileUs(99)).toBe(0)
    expect(histogramOf([]).summary().meanUs).toBe(0)
  })

  test.each([
    ['microseconds', 1],
    ['milliseconds', 1000],
    ['seconds', 1_000_000],
  ])('returns percentiles of %s within 1 % of those of the sorted list', (_unit, step) => {
    const histogram = histogramOf(upTo(10_000, step))
    for (const percentile of [50, 75, 90, 99, 99.9, 99.99]) {
      const exact = Math.ceil((percentile / 100) * 10_000) * step
      expect(Math.abs(histogram.percentileUs(percentile) - exact) / exact).toBeLessThan(0.01)
    }
  })

  test('returns no percentile above the largest value', () => {
    expect(histogramOf([1234.5]).percentileUs(99.99)).toBe(1234.5)
    expect(histogramOf([1234.5]).summary().maxUs).toBe(1234.5)
  })

  test('counts a value beyond the last bucket', () => {
    const histogram = histogramOf([1e15])
    expect(histogram.count).toBe(1)
    expect(histogram.percentileUs(50)).toBeGreaterThan(1e10)
  })
})
