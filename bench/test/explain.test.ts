import { describe, expect, test } from 'vitest'

import { explain } from '../src/load/explain.ts'
import { parseUsage, recordingShare } from '../src/load/metrics.ts'
import type { LoadOutcome } from '../src/load/outcome.ts'

const run: LoadOutcome = {
  generator: 'wrk',
  requests: 920_000,
  durationMs: 10_000,
  perSecond: 92_000,
  latency: { count: 920_000, meanUs: 600, maxUs: 9000, percentilesUs: { '50': 540, '99': 2100 } },
  statuses: { '2xx-3xx': 920_000 },
  codes: null,
  errors: {},
  targetPerSecond: null,
}
const half: LoadOutcome = {
  ...run,
  generator: 'fixed-rate',
  perSecond: 46_000,
  targetPerSecond: 46_000,
  latency: { ...run.latency, percentilesUs: { '50': 210, '99': 1100 } },
}

describe('explain', () => {
  test('states the throughput, the latency at half of the throughput, and the share of recording', () => {
    expect(explain({ run, half, recordingShare: 0.0091 })).toBe(
      `Your validator decided 92,000 checks a second.
At half of that, 46,000 checks a second, half of the responses arrived within 210 us, and 99 of 100 within 1.10 ms.
The validator spent 0.9 % of its processor time on the aggregation of usage.`,
    )
  })

  test('states the share of checks that were not VALID, the failures, and that the generator was too slow', () => {
    const codes = { VALID: 900_000, BLACKLISTED: 20_000 }
    const errors = { 'connection refused': 3 }
    const outcome: LoadOutcome = {
      ...run,
      generator: 'closed-loop',
      codes,
      errors,
      statuses: { '200': 915_400, '503': 4600 },
    }
    const text = explain({ run: outcome, half: null, recordingShare: null })
    expect(text).toContain('2.2 % of them were not VALID.')
    expect(text).toContain('3 requests failed without a response.')
    expect(text).toContain('0.5 % of the responses were errors of the server.')
    expect(text).toContain('add --wrk')
    expect(text).not.toContain('half')
  })

  test('states whether a fixed rate was reached', () => {
    expect(explain({ run: half, half: null, recordingShare: null })).toBe(
      'Your validator decided all of the 46,000 checks a second.\n' +
        'At this rate, half of the responses arrived within 210 us, and 99 of 100 within 1.10 ms.',
    )
    expect(explain({ run: { ...half, perSecond: 40_000 }, half: null, recordingShare: null })).toContain(
      'only 40,000 of 46,000 checks a second',
    )
  })
})

describe('the share of recording', () => {
  const metrics = `# TYPE keyward_checks_total counter
keyward_checks_total{api="v1",code="VALID"} 10
keyward_checks_total{api="v2",code="VALID"} 990
process_cpu_seconds_total 4.5
keyward_record_seconds_total 0.25
`

  test('the share of recording is computed from two readings of the metrics', () => {
    const before = parseUsage(metrics)
    expect(before).toEqual({ checks: 1000, cpuSeconds: 4.5, recordSeconds: 0.25 })
    const after = { checks: 3000, cpuSeconds: 6.5, recordSeconds: 0.27 }
    expect(recordingShare(before, after, 2000)).toBeCloseTo(0.01)
  })

  test('the share of recording is null when a metric is missing or the validator did not decide the checks', () => {
    expect(parseUsage('process_cpu_seconds_total 4.5')).toBeNull()
    const reading = { checks: 1000, cpuSeconds: 4.5, recordSeconds: 0.25 }
    expect(recordingShare(null, reading, 10)).toBeNull()
    expect(recordingShare(reading, { ...reading, cpuSeconds: 5 }, 10)).toBeNull()
  })
})
