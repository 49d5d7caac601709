/** Draws the elements of SVG charts. Colors are CSS variables, so a chart is readable on a light and a dark page. */

export interface Box {
  width: number
  height: number
  left: number
  right: number
  top: number
  bottom: number
}

export type Scale = (value: number) => number

export function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${escapeXml(content)}</text>`
}

export function line(x1: number, y1: number, x2: number, y2: number, className: string): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" class="${className}"/>`
}

export function rect(x: number, y: number, width: number, height: number, className: string): string {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(Math.max(0, width))}" height="${round(height)}" rx="2" class="${className}"/>`
}

/** Draws a point with a tooltip. */
export function dot(x: number, y: number, className: string, title: string): string {
  return `<circle cx="${round(x)}" cy="${round(y)}" r="4" class="${className}"><title>${escapeXml(title)}</title></circle>`
}

export function svg(box: Box, title: string, content: readonly string[]): string {
  return `<svg viewBox="0 0 ${box.width} ${box.height}" role="img" aria-label="${escapeXml(title)}" xmlns="http://www.w3.org/2000/svg">${content.join('')}</svg>`
}

/** Returns a function from values to pixels. On a logarithmic scale, values of 0 or less are at the lower end. */
export function scale(low: number, high: number, from: number, to: number, log = false): Scale {
  if (!log) return (value) => from + ((value - low) / (high - low || 1)) * (to - from)
  const [first, last] = [Math.log10(Math.max(low, 1e-9)), Math.log10(Math.max(high, 1e-9))]
  return (value) => from + ((Math.log10(Math.max(value, 1e-9)) - first) / (last - first || 1)) * (to - from)
}

/** Returns round values of which the first is at most `low` and the last at least `high`. */
export function ticks(low: number, high: number, log = false, about = 5): number[] {
  if (log) return logTicks(low, high)
  const span = high - low || Math.abs(high) || 1
  const rough = span / about
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power
  const first = Math.floor(low / step + 1e-9)
  const last = Math.ceil(high / step - 1e-9)
  return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)))
}

function logTicks(low: number, high: number): number[] {
  const first = Math.floor(Math.log10(Math.max(low, 1e-9)) + 1e-9)
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(high, 1e-9)) - 1e-9))
  return Array.from({ length: last - first + 1 }, (_, n) => Number(`1e${first + n}`))
}

/** Formats a value with few digits. For example, 1234567 is 1.23 M. */
export function compact(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e9) return `${trim(value / 1e9)} G`
  if (size >= 1e6) return `${trim(value / 1e6)} M`
  if (size >= 10_000) return `${trim(value / 1000)} k`
  if (size >= 1000) return String(Math.round(value))
  return trim(value)
}

function trim(value: number): string {
  if (value === 0) return '0'
  return String(Number(value.toPrecision(3)))
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10)
}
