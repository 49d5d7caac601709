import { describe, expect, test } from 'vitest'

import { chart, type Chart } from '../src/report/chart.ts'
import { draw } from '../src/report/draw.ts'
import { flatten, renderReport } from '../src/report/page.ts'
import type { ResultFile } from '../src/report/results.ts'
import { compact, scale, ticks } from '../src/report/svg.ts'

const bars: Chart = {
  kind: 'bars',
  title: 'Checks a second',
  unit: 'checks/s',
  log: true,
  bars: [
    { label: 'Keyward', value: 100_000, low: 95_000, high: 104_000, ours: true },
    { label: '<SQL> & co', value: 4000, ours: false },
  ],
}
const dots: Chart = {
  kind: 'dots',
  title: 'Ratio',
  unit: 'x',
  rows: [{ label: 'Keyward', values: [0.91, 0.93, 0.92], goal: 0.9, direction: 'at least' }],
}
const lines: Chart = {
  kind: 'lines',
  title: 'Latency',
  x: { label: 'per cent', log: true, ticks: [{ at: 2, text: '50' }] },
  y: { label: 'us', log: true },
  series: [
    {
      label: 'Keyward while rules change all the time',
      ours: true,
      points: [
        [2, 80],
        [100, 400],
      ],
    },
    {
      label: 'ceiling',
      ours: false,
      points: [
        [2, 70],
        [100, 390],
      ],
    },
  ],
}

function resultOf(data: unknown): ResultFile {
  const machine = { cpu: 'a <fast> one', cores: 2, memoryGiB: 8, kernel: '6', platform: 'linux-x64' }
  return { name: 'local-known', date: '2026-01-01T00:00:00.000Z', machine, node: '22.0.0', commit: 'abc', data }
}

/** Returns the closing tags without an opening tag, and the tags that are never closed. */
function unbalanced(drawing: string): string[] {
  const open: string[] = []
  const wrong: string[] = []
  for (const [, slash, name = '', rest = ''] of drawing.matchAll(/<(\/?)(\w+)([^>]*)>/g)) {
    if (slash === '' && !rest.endsWith('/')) open.push(name)
    else if (slash === '/' && open.pop() !== name) wrong.push(name)
  }
  return [...open, ...wrong]
}

describe('scales and ticks', () => {
  test.each([
    [0, 97],
    [0.83, 0.94],
    [0, 1_234_567],
    [5, 5],
    [-3, 4],
  ])('returns fewer than 12 ticks that enclose %d and %d', (low, high) => {
    const at = ticks(low, high)
    expect(at[0]).toBeLessThanOrEqual(low)
    expect(at.at(-1)).toBeGreaterThanOrEqual(high)
    expect(at.length).toBeLessThan(12)
  })

  test('logarithmic ticks are powers of ten', () => {
    expect(ticks(37, 120_000, true)).toEqual([10, 100, 1000, 10_000, 100_000, 1_000_000])
  })

  test('maps values to pixels on linear and logarithmic scales', () => {
    expect([scale(0, 10, 100, 200)(0), scale(0, 10, 100, 200)(10), scale(0, 10, 200, 100)(5)]).toEqual([100, 200, 150])
    expect(scale(1, 100, 0, 10, true)(10)).toBeCloseTo(5)
  })

  test.each([
    [0, '0'],
    [0.9123, '0.912'],
    [8, '8'],
    [4213.4, '4213'],
    [146_000, '146 k'],
    [3_000_000, '3 M'],
  ])('compact formats %d as %s', (value, words) => {
    expect(compact(value)).toBe(words)
  })
})

describe('drawings', () => {
  test.each([bars, dots, lines].map((each) => [each.kind, each] as const))(
    'a drawing of %s closes every tag and contains only finite numbers',
    (_kind, each) => {
      const drawing = draw(chart.parse(each))
      expect(drawing).not.toMatch(/NaN|Infinity|undefined/)
      expect(unbalanced(drawing)).toEqual([])
    },
  )

  test('drawings escape labels', () => {
    expect(draw(bars)).toContain('&lt;SQL&gt; &amp; co')
  })
})

describe('the page', () => {
  test('shows scenarios with goals, charts and notes, and other results with their figures', () => {
    const measured = { median: 0.92, min: 0.9, max: 0.94, low: 0.91, high: 0.93, rounds: 13 }
    const goal = { text: 'against the ceiling', direction: 'at least', value: 0.9, unit: 'x', reached: true, measured }
    const outcome = {
      title: 'Known',
      question: 'How much?',
      headlines: [{ figure: '95,000', text: 'checks a second & more' }],
      goals: [goal],
      charts: [bars, dots, lines],
      notes: ['a < b'],
      figures: {},
    }
    const page = renderReport([
      resultOf(outcome),
      {
        ...resultOf({ claims: { perSecond: 52_300 }, rounds: { single: [1, 2, 3], batched: [7, 8, 9] } }),
        name: 'claims',
      },
    ])
    expect(page).toContain('against the ceiling')
    expect(page).toContain('<h2>Goals</h2>')
    expect(page.indexOf('<b>95,000</b> checks a second &amp; more')).toBeLessThan(page.indexOf('against the ceiling'))
    expect(page).toContain('<b>95,000</b>')
    expect(page).toContain('a &lt; b')
    expect(page).toContain('claims.perSecond')
    expect(page).toContain('a &lt;fast&gt; one')
    expect(page.match(/<svg/g)).toHaveLength(4)
    expect(page).not.toMatch(/<script|https?:\/\/(?!www\.w3\.org)/)
  })

  test('shows no goals of a quick run', () => {
    const goal = {
      text: 'x',
      direction: 'at least',
      value: 1,
      unit: 'x',
      reached: true,
      measured: { median: 2, min: 2, max: 2, rounds: 1 },
    }
    const quick = { title: 'Known', question: '', goals: [goal], charts: [], notes: [], quick: true }
    const page = renderReport([resultOf(quick)])
    expect(page).toContain('quick run')
    expect(page).not.toContain('<h2>Goals</h2>')
  })

  test('flatten returns dotted names, and only the number of values of a long list', () => {
    expect(flatten({ a: { b: 1.5 }, c: Array.from({ length: 20 }, () => 1), d: [true, null] })).toEqual([
      ['a.b', '1.5'],
      ['c', '20 values'],
      ['d.0', 'true'],
      ['d.1', 'null'],
    ])
  })
})
