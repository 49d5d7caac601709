import { describe, expect, test } from 'vitest'

import { parseCoreList, planCores } from '../src/harness/cores.ts'
import { judge } from '../src/harness/goals.ts'
import { shapeOf, knownChecks } from '../src/harness/known-checks.ts'
import { compare, type Rounds } from '../src/harness/rounds.ts'
import { ratios, summarize } from '../src/harness/stats.ts'

describe('statistics', () => {
  test('summarize returns median and quartiles, and throws without values', () => {
    expect(summarize([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3, low: 1.5, high: 2.5, rounds: 3 })
    expect(summarize([4, 1, 3, 2]).median).toBe(2.5)
    expect(() => summarize([])).toThrow(/no values/)
  })

  test('ratios divides the two values of each round', () => {
    expect(ratios([90, 45], [100, 50])).toEqual([0.9, 0.9])
  })

  test('judge compares the median with the goal in the direction of the goal', () => {
    expect(judge('growth', [0.7, 0.86, 0.9])).toMatchObject({ reached: true, measured: { median: 0.86, rounds: 3 } })
    expect(judge('growth', [0.84]).reached).toBe(false)
    expect(judge('start', [7.9]).reached).toBe(true)
    expect(judge('start', [8.1]).reached).toBe(false)
  })
})

describe('cores', () => {
  test('parseCoreList parses core lists in the format of the kernel, such as 0-2,5', () => {
    expect(parseCoreList('0-2,5')).toEqual([0, 1, 2, 5])
    expect(parseCoreList('3')).toEqual([3])
  })

  test('planCores never assigns a core of the server to the load generator', () => {
    expect(planCores(1, [0, 1], true)).toMatchObject({ server: [0], load: [1], postgres: [1], pinned: true })
    expect(planCores(2, [0, 1, 2, 3], true)).toEqual({
      server: [0, 1],
      load: [2],
      postgres: [3],
      pinned: true,
      loadFirst: false,
    })
    expect(() => planCores(2, [0, 1], true)).toThrow(/need 3 cores; this machine has 2/)
  })
})

test('compare divides figures of the same round', () => {
  const figure = (perSecond: number) => ({ perSecond, cpuUs: null, p50Us: 1, p99Us: 1, napsPerSecond: null })
  const rounds: Rounds = new Map([
    ['small', [figure(100), figure(50)]],
    ['large', [figure(80), figure(45)]],
  ])
  expect(compare(rounds, 'perSecond', 'large', 'small')).toEqual([0.8, 0.9])
  expect(() => compare(rounds, 'cpuUs', 'large', 'small')).toThrow(/does not report cpuUs/)
})

test('knownChecks returns the same checks each time, and only of the selected organizations', () => {
  const shape = shapeOf(5000, 100)
  const checks = knownChecks(shape, { count: 300, addressRules: true, forwarded: true })
  expect(checks.length).toBe(1000)
  expect(knownChecks(shape, { count: 300, addressRules: true, forwarded: true })).toEqual(checks)
  expect(new Set(checks.map(({ apiKey }) => apiKey)).size).toBe(5)
  expect(checks.every(({ forwardedFor }) => forwardedFor !== null)).toBe(true)
})
