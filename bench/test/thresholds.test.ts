import { expect, test } from 'vitest'

import type { LoadOutcome } from '../src/load/outcome.ts'
import { missedThresholds } from '../src/load/thresholds.ts'

const outcome: LoadOutcome = {
  generator: 'fixed-rate',
  requests: 1_000,
  durationMs: 1_000,
  perSecond: 990,
  latency: { count: 990, meanUs: 600, maxUs: 9_000, percentilesUs: { '50': 540, '99': 2_100 } },
  statuses: { '200': 900, '400': 85, '503': 5 },
  codes: null,
  errors: { 'connection refused': 10 },
  targetPerSecond: 1_000,
}

test('misses no limit that is exactly met, and no limit that is not set', () => {
  expect(missedThresholds(outcome, { maxP99Ms: 2.1, minPerSecond: 990, maxFailuresPercent: 1.5 })).toEqual([])
  expect(missedThresholds(outcome, { maxP99Ms: null, minPerSecond: null, maxFailuresPercent: null })).toEqual([])
})

test('names each missed limit; rejected checks are no failures', () => {
  expect(missedThresholds(outcome, { maxP99Ms: 2, minPerSecond: 1_000, maxFailuresPercent: 1.4 })).toEqual([
    'p99 is 2.10 ms; --max-p99 is 2',
    '990 checks a second arrived; --min-rate is 1000',
    '1.500 % of the checks failed; --max-failures is 1.4',
  ])
})
