import { describe, expect, test } from 'vitest'

import { explain } from '../src/load/explain.ts'
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
  test('states the throughput and the latency at half of the throughput', () => {
    expect(explain({ run, half })).toBe(
      `Your validator decided 92,000 checks a second.
At half of that, 46,000 checks a second, half of the responses arrived within 210 us, and 99 of 100 within 1.10 ms.`,
    )
  })

  test('states the share of checks that were not VALID, the failures, and that the generator was too slow', () => {
    const codes = { VALID: 900_000, BLACKLISTED: 20_000 }
    const errors = { 'connection refused': 3 }
    const outcome: LoadOutcome = {
      ...run,
      generator: 'as-fast-as-possible',
      codes,
      errors,
      statuses: { '200': 915_400, '503': 4600 },
    }
    const text = explain({ run: outcome, half: null })
    expect(text).toContain('2.2 % of them were not VALID.')
    expect(text).toContain('3 requests failed without a response.')
    expect(text).toContain('0.5 % of the responses were errors of the server.')
    expect(text).toContain('add --wrk')
    expect(text).not.toContain('half')
  })

  test('states whether a fixed rate was reached', () => {
    expect(explain({ run: half, half: null })).toBe(
      'Your validator decided all of the 46,000 checks a second.\n' +
        'At this rate, half of the responses arrived within 210 us, and 99 of 100 within 1.10 ms.',
    )
    expect(explain({ run: { ...half, perSecond: 40_000 }, half: null })).toContain(
      'only 40,000 of 46,000 checks a second',
    )
  })
})
