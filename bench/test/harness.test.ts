import { describe, expect, test } from 'vitest'

import { parseCoreList, planCores } from '../src/harness/cores.ts'
import { parseCollection } from '../src/harness/gc-trace.ts'
import { judge } from '../src/harness/goals.ts'
import { shapeOf, knownChecks } from '../src/harness/known-checks.ts'
import { ratios, summarize } from '../src/harness/stats.ts'
import { parseFigures } from '../src/scenarios/engine.ts'

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
    expect(judge('againstSql', summarize([20, 25.5, 30])).reached).toBe(true)
    expect(judge('againstSql', summarize([24.9])).reached).toBe(false)
    expect(judge('start', summarize([7.9])).reached).toBe(true)
    expect(judge('start', summarize([8.1])).reached).toBe(false)
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

describe('parseCollection', () => {
  test.each([
    [
      '[32250:0x2af34000]       34 ms: Scavenge 4.4 (5.1) -> 3.5 (6.1) MB, pooled: 0 MB, 0.36 / 0.00 ms  (average mu = 1.000, current mu = 1.000) allocation failure;',
      { isolate: '0x2af34000', atMs: 34, kind: 'Scavenge', pauseMs: 0.36 },
    ],
    [
      '[711:0x7f12:0] 1834 ms: Mark-Compact (reduce) 9.1 (12.0) -> 5.0 (9.0) MB, pooled: 0 MB, 5.12 / 0.00 ms (+ 1.2 ms in 10 steps since start of marking, biggest step 0.5 ms)',
      { isolate: '0x7f12', atMs: 1834, kind: 'Mark-Compact (reduce)', pauseMs: 5.12 },
    ],
  ])('parseCollection parses %s', (line, expected) => {
    expect(parseCollection(line)).toEqual(expected)
  })

  test('parseCollection returns null for a line that reports no collection', () => {
    expect(parseCollection('{"level":30,"msg":"listening"}')).toBe(null)
  })
})

test('knownChecks returns the same checks each time, and only of the selected organizations', () => {
  const shape = shapeOf(5000, 100)
  const checks = knownChecks(shape, { count: 300, addressRules: true, forwarded: true })
  expect(checks.length).toBe(1000)
  expect(knownChecks(shape, { count: 300, addressRules: true, forwarded: true })).toEqual(checks)
  expect(new Set(checks.map(({ apiKey }) => apiKey)).size).toBe(5)
  expect(checks.every(({ forwardedFor }) => forwardedFor !== null)).toBe(true)
})

test('parseFigures parses the output of the engine microbenchmark', () => {
  expect(parseFigures('verdict: unknown key            171.2 ns\ntrie: times faster    99.5 \nsomething else')).toEqual(
    [
      { name: 'verdict: unknown key', value: 171.2, unit: 'ns' },
      { name: 'trie: times faster', value: 99.5, unit: '' },
    ],
  )
})
