import type { BarChart, Chart, DotChart, LineChart } from './chart.ts'
import { compact, dot, line, rect, scale, svg, text, ticks, type Box } from './svg.ts'

const WIDTH = 720
const ROW = 34
const LABELS = 210

export function draw(chart: Chart): string {
  switch (chart.kind) {
    case 'bars':
      return drawBars(chart)
    case 'dots':
      return drawDots(chart)
    case 'lines':
      return drawLines(chart)
    default:
      return chart satisfies never
  }
}

function rowsBox(rows: number): Box {
  return { width: WIDTH, height: rows * ROW + 56, left: LABELS, right: 92, top: 8, bottom: 48 }
}

function drawBars(chart: BarChart): string {
  const box = rowsBox(chart.bars.length)
  const values = chart.bars.map((bar) => bar.value)
  const highest = Math.max(...chart.bars.map((bar) => bar.high ?? bar.value), 0)
  const lowest = chart.log ? Math.min(...values) / 1.5 : 0
  const at = ticks(lowest, highest, chart.log)
  const x = scale(at[0]!, at.at(-1)!, box.left, box.width - box.right, chart.log)
  const content = chart.bars.flatMap((bar, row) => {
    const y = box.top + row * ROW
    const middle = y + ROW / 2
    const end = x(bar.value)
    const whisker =
      bar.low === undefined || bar.high === undefined ? '' : line(x(bar.low), middle, x(bar.high), middle, 'whisker')
    return [
      rowLabel(box, middle, bar.label),
      rect(box.left, y + 6, end - box.left, ROW - 12, bar.ours ? 'ours' : 'other'),
      whisker,
      text(Math.max(end, x(bar.high ?? bar.value)) + 6, middle + 4, compact(bar.value), 'class="value"'),
    ]
  })
  return svg(box, chart.title, [
    ...xAxis(box, at, x, chart.log ? `${chart.unit}, logarithmic` : chart.unit),
    ...content,
  ])
}

function drawDots(chart: DotChart): string {
  const box = rowsBox(chart.rows.length)
  const all = chart.rows.flatMap(({ values, goal }) => (goal === null ? values : [...values, goal]))
  const at = ticks(Math.min(...all), Math.max(...all))
  const x = scale(at[0]!, at.at(-1)!, box.left, box.width - box.right)
  const content = chart.rows.flatMap((row, n) => {
    const y = box.top + n * ROW
    const middle = y + ROW / 2
    const sorted = row.values.toSorted((a, b) => a - b)
    const median = sorted[Math.floor(sorted.length / 2)] ?? 0
    const right = box.width - box.right + 10
    const goal =
      row.goal === null
        ? []
        : [
            line(x(row.goal), y + 2, x(row.goal), y + ROW - 2, 'goal'),
            text(right, middle + 13, `${row.direction} ${compact(row.goal)}`, 'class="small goal-text"'),
          ]
    return [
      rowLabel(box, middle, row.label),
      line(box.left, middle, box.width - box.right, middle, 'grid'),
      ...row.values.map((value, round) =>
        dot(x(value), middle, 'dot', `round ${round + 1}: ${compact(value)} ${chart.unit}`),
      ),
      line(x(median), y + 7, x(median), y + ROW - 7, 'median'),
      text(right, row.goal === null ? middle + 4 : middle, compact(median), 'class="value"'),
      ...goal,
    ]
  })
  return svg(box, chart.title, [...xAxis(box, at, x, chart.unit === 'x' ? 'times' : chart.unit), ...content])
}

function drawLines(chart: LineChart): string {
  const box: Box = { width: WIDTH, height: 340, left: 64, right: 150, top: 16, bottom: 48 }
  const points = chart.series.flatMap((series) => series.points)
  const xs = points.map(([value]) => value)
  const ys = points.map(([, value]) => value)
  const yAt = ticks(chart.y.log ? Math.min(...ys) : 0, Math.max(...ys), chart.y.log)
  const x = scale(Math.min(...xs), Math.max(...xs), box.left, box.width - box.right, chart.x.log)
  const y = scale(yAt[0]!, yAt.at(-1)!, box.height - box.bottom, box.top, chart.y.log)
  const xAt =
    chart.x.ticks ??
    ticks(Math.min(...xs), Math.max(...xs), chart.x.log).map((value) => ({ at: value, text: compact(value) }))
  const axes = [
    ...yAt.flatMap((value) => [
      line(box.left, y(value), box.width - box.right, y(value), 'grid'),
      text(box.left - 8, y(value) + 4, compact(value), 'text-anchor="end" class="small"'),
    ]),
    ...xAt.map((tick) =>
      text(x(tick.at), box.height - box.bottom + 18, tick.text, 'text-anchor="middle" class="small"'),
    ),
    text((box.left + box.width - box.right) / 2, box.height - 8, chart.x.label, 'text-anchor="middle" class="small"'),
    text(8, 11, chart.y.label, 'class="small"'),
  ]
  const ends = spread(chart.series.map(({ points: own }) => y(own.at(-1)?.[1] ?? 0)))
  const drawn = chart.series.flatMap((series, n) => {
    const color = `series-${n % 4}${series.ours ? '' : ' quiet'}`
    const path = series.points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(' ')
    return [
      `<polyline points="${path}" class="line ${color}"/>`,
      ...series.points.map(([px, py]) =>
        dot(x(px), y(py), `mark ${color}`, `${series.label}: ${compact(py)} ${chart.y.label}`),
      ),
      ...wrap(series.label, 20).map((words, row) =>
        text(box.width - box.right + 10, ends[n]! + 4 + row * 13, words, `class="small label ${color}"`),
      ),
    ]
  })
  return svg(box, chart.title, [...axes, ...drawn])
}

function rowLabel(box: Box, middle: number, label: string): string {
  const rows = wrap(label, 30)
  const top = middle + 4 - (rows.length - 1) * 7
  return rows.map((words, n) => text(box.left - 10, top + n * 14, words, 'text-anchor="end"')).join('')
}

function xAxis(box: Box, at: readonly number[], x: (value: number) => number, unit: string): string[] {
  const bottom = box.height - box.bottom
  return [
    ...at.flatMap((value) => [
      line(x(value), box.top, x(value), bottom + 4, 'grid'),
      text(x(value), bottom + 18, compact(value), 'text-anchor="middle" class="small"'),
    ]),
    text(
      (box.left + box.width - box.right) / 2,
      box.height - 6,
      unit === 'x' ? 'times' : unit,
      'text-anchor="middle" class="small"',
    ),
  ]
}

/** Moves overlapping labels apart. Keeps their order from top to bottom. */
function spread(places: readonly number[]): number[] {
  const gap = 30
  const moved = [...places]
  const order = places.map((_, n) => n).toSorted((a, b) => places[a]! - places[b]!)
  for (let n = 1; n < order.length; n += 1) {
    const [above, below] = [order[n - 1]!, order[n]!]
    moved[below] = Math.max(moved[below]!, moved[above]! + gap)
  }
  return moved
}

/** Breaks a label into at most two lines. */
function wrap(label: string, width: number): string[] {
  if (label.length <= width) return [label]
  const space = label.lastIndexOf(' ', width)
  return space < 0 ? [label] : [label.slice(0, space), label.slice(space + 1)]
}
