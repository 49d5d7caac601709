/** Draws the charts of a report as SVG without a script. Colors are CSS variables of the page. */

export interface Point {
  x: number
  /** Null interrupts the line. */
  y: number | null
}

export interface Line {
  name: string
  /** The number of the color, `--color-1` to `--color-3`. */
  color: 1 | 2 | 3
  isDashed?: boolean
  points: readonly Point[]
}

interface Axis {
  label: string
  format: (value: number) => string
}

export interface LineChart {
  title: string
  x: Axis & { ticks: readonly number[]; max: number; scale?: (value: number) => number }
  y: Axis & { isLog?: boolean }
  lines: readonly Line[]
}

const [WIDTH, HEIGHT] = [720, 300]
const [LEFT, RIGHT, TOP, BOTTOM] = [84, 32, 34, 48]
const LEGEND_WIDTH = 160
const Y_TICKS = 5

/** Draws lines above a legend. A screen reader gets the title. The tables of the page contain the values. */
export function drawLines({ title, x, y, lines }: LineChart): string {
  const scaleX = x.scale ?? ((value: number) => value)
  const values = lines.flatMap(({ points }) => points.flatMap((point) => (point.y === null ? [] : [point.y])))
  const ticksY = y.isLog === true ? logTicks(values) : linearTicks(Math.max(0, ...values))
  const toUnit = (value: number): number => (y.isLog === true ? Math.log10(Math.max(value, ticksY[0] ?? 1)) : value)
  const [firstX, lastX] = [scaleX(x.ticks[0] ?? 0), scaleX(x.max)]
  const [firstY, lastY] = [toUnit(ticksY[0] ?? 0), toUnit(ticksY.at(-1) ?? 1)]
  const atX = (value: number): number =>
    LEFT + ((scaleX(value) - firstX) / (lastX - firstX || 1)) * (WIDTH - LEFT - RIGHT)
  const atY = (value: number): number =>
    HEIGHT - BOTTOM - ((toUnit(value) - firstY) / (lastY - firstY || 1)) * (HEIGHT - TOP - BOTTOM)
  const grid = ticksY.map(
    (value) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(atY(value))}" y2="${round(atY(value))}"/>` +
      `<text x="${LEFT - 8}" y="${round(atY(value) + 4)}" text-anchor="end">${escapeHtml(y.format(value))}</text>`,
  )
  const ticksX = x.ticks.filter((value) => value <= x.max)
  const marks = ticksX.map(
    (value) =>
      `<text x="${round(atX(value))}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${escapeHtml(x.format(value))}</text>`,
  )
  const legend = lines.map(
    ({ name, color, isDashed }, index) =>
      `<line class="line color-${color}${isDashed === true ? ' dashed' : ''}" x1="${LEFT + index * LEGEND_WIDTH}" x2="${LEFT + 22 + index * LEGEND_WIDTH}" y1="14" y2="14"/>` +
      `<text x="${LEFT + 28 + index * LEGEND_WIDTH}" y="18">${escapeHtml(name)}</text>`,
  )
  const axis = `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${escapeHtml(x.label)}</text>`
  const drawn = lines.map(
    ({ points, color, isDashed }) =>
      `<path class="line color-${color}${isDashed === true ? ' dashed' : ''}" d="${pathOf(points, atX, atY)}"/>`,
  )
  const label = y.label === '' ? '' : ` <small>${escapeHtml(y.label)}</small>`
  const svg = `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">`
  const parts = [...grid, ...marks, axis, ...legend, ...drawn].join('')
  return `<figure><figcaption>${escapeHtml(title)}${label}</figcaption><div class="chart" tabindex="0">${svg}${parts}</svg></div></figure>`
}

/** Draws one bar for each count, with its share of all. The bars are HTML, so that they fit a phone. */
export function drawBars(title: string, counts: readonly (readonly [string, number])[]): string {
  const total = counts.reduce((sum, [, count]) => sum + count, 0)
  const most = Math.max(1, ...counts.map(([, count]) => count))
  const rows = counts.map(([name, count]) => {
    const share = ((100 * count) / Math.max(1, total)).toFixed(2)
    const width = Math.max(0.5, round((100 * count) / most))
    return `<li>${escapeHtml(name)}: ${count.toLocaleString('en-US')} (${share} %)<i style="width:${width}%"></i></li>`
  })
  return `<figure><figcaption>${escapeHtml(title)}</figcaption><ul>${rows.join('')}</ul></figure>`
}

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** Returns up to six round numbers from 0 to at least `max`. */
export function linearTicks(max: number): number[] {
  const rough = Math.max(max, 1e-9) / Y_TICKS
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power
  return Array.from({ length: Math.max(1, Math.ceil(max / step - 1e-9)) + 1 }, (_, index) => index * step)
}

/** Returns the powers of ten that surround the values. */
function logTicks(values: readonly number[]): number[] {
  const above = values.filter((value) => value > 0)
  if (above.length === 0) return [1, 10]
  const first = Math.floor(Math.log10(Math.min(...above)))
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...above))))
  return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index))
}

function pathOf(points: readonly Point[], atX: (value: number) => number, atY: (value: number) => number): string {
  let isDrawing = false
  return points
    .map((point) => {
      const command = isDrawing ? 'L' : 'M'
      isDrawing = point.y !== null
      return point.y === null ? '' : `${command}${round(atX(point.x))} ${round(atY(point.y))}`
    })
    .join('')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
