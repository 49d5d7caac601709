/** Stacked bars of checks by outcome. For readers who cannot see the chart, the overview contains a table with the totals. */

import { type Code, CODES } from '@keyward/contract'
import { Group, Text } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'

import { text } from '../text.ts'

export interface Bar {
  /** The start of the bucket. */
  start: string
  counts: Partial<Record<Code, number>>
}

/** The width in pixels that is assumed until the chart has been measured. */
const INITIAL_WIDTH = 800
/** The width of a label of the time axis, in pixels. */
const LABEL_WIDTH = 110
const HEIGHT = 180
const TOP = 18
const BOTTOM = 20
const MS = { hour: 3_600_000, day: 86_400_000 }

/** The color of each code. The colors are distinguishable in both themes and with red-green color blindness. */
const COLORS: Record<Code, string> = {
  VALID: 'var(--mantine-color-teal-6)',
  NOT_FOUND: 'var(--mantine-color-gray-5)',
  BLACKLISTED: 'var(--mantine-color-red-7)',
  REVOKED: 'var(--mantine-color-grape-6)',
  SUSPENDED: 'var(--mantine-color-yellow-6)',
  EXPIRED: 'var(--mantine-color-orange-6)',
  FINGERPRINT_REQUIRED: 'var(--mantine-color-blue-5)',
  TOO_MANY_MACHINES: 'var(--mantine-color-pink-6)',
}

function sumOf({ counts }: Bar): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

export function Chart({
  bars,
  from,
  to,
  interval,
}: {
  bars: readonly Bar[]
  from: string
  to: string
  interval: 'hour' | 'day'
}) {
  const { ref, width: measured } = useElementSize()
  const total = measured === 0 ? INITIAL_WIDTH : measured
  const [start, end] = [Date.parse(from), Date.parse(to)]
  const slots = Math.max(1, Math.ceil((end - start) / MS[interval]))
  const width = total / slots
  const labels = Math.max(1, Math.min(4, Math.floor(total / LABEL_WIDTH)))
  const parts = Array.from({ length: labels }, (_, index) => index / labels)
  const highest = Math.max(1, ...bars.map(sumOf))
  const used = CODES.filter((code) => bars.some(({ counts }) => (counts[code] ?? 0) > 0))
  const day = new Intl.DateTimeFormat(
    undefined,
    slots > 24 ? { month: 'short', day: 'numeric' } : { timeStyle: 'short' },
  )
  return (
    <div ref={ref}>
      <svg
        className="chart"
        viewBox={`0 0 ${total} ${TOP + HEIGHT + BOTTOM}`}
        role="img"
        aria-label={text.overview.chart}
      >
        {bars.map((bar) => {
          const x = Math.floor((Date.parse(bar.start) - start) / MS[interval]) * width
          let y = TOP + HEIGHT
          return (
            <g key={bar.start}>
              <title>{`${day.format(new Date(bar.start))}: ${sumOf(bar).toLocaleString()}`}</title>
              {used.map((code) => {
                const height = ((bar.counts[code] ?? 0) / highest) * HEIGHT
                y -= height
                return (
                  <rect
                    key={code}
                    x={x + 0.5}
                    y={y}
                    width={Math.max(1, width - 1)}
                    height={height}
                    fill={COLORS[code]}
                  />
                )
              })}
            </g>
          )
        })}
        {parts.map((part) => (
          <text key={part} x={part * total} y={TOP + HEIGHT + BOTTOM - 4}>
            {day.format(new Date(start + part * (end - start)))}
          </text>
        ))}
        <line className="chart-top" x1={0} x2={total} y1={TOP} y2={TOP} />
        <text x={0} y={TOP - 5}>
          {highest.toLocaleString()}
        </text>
        <line className="chart-top" x1={0} x2={total} y1={TOP + HEIGHT} y2={TOP + HEIGHT} />
      </svg>
      <Group gap="md" mt="xs">
        {used.map((code) => (
          <Group key={code} gap={6}>
            <svg width={10} height={10} aria-hidden="true">
              <rect width={10} height={10} rx={2} fill={COLORS[code]} />
            </svg>
            <Text size="xs">{text.codes[code]}</Text>
          </Group>
        ))}
      </Group>
    </div>
  )
}
