/**
 * Checks over time in two panels: the valid ones as an area, and the rejected ones as bars with their own scale, stacked in groups. For readers
 * who cannot see the chart, the overview contains a table with the totals.
 */

import { type Code, CODES } from '@keyward/contract'
import { useElementSize } from '@mantine/hooks'
import { scaleLinear, scaleTime } from '@visx/scale'
import { AreaClosed, LinePath } from '@visx/shape'
import { type KeyboardEvent, type PointerEvent, useState } from 'react'

import { text } from '../text.ts'

export interface Bucket {
  start: Date
  end: Date
  counts: Partial<Record<Code, number>>
}

/** The groups of rejections in the order in which they are stacked. Neighbors differ in lightness. */
export const GROUP_NAMES = ['limit', 'blocked', 'ended', 'unknown'] as const
type Group = (typeof GROUP_NAMES)[number]

const GROUP_OF = {
  VALID: 'valid',
  TOO_MANY_MACHINES: 'limit',
  BLACKLISTED: 'blocked',
  EXPIRED: 'ended',
  SUSPENDED: 'ended',
  REVOKED: 'ended',
  NOT_FOUND: 'unknown',
  FINGERPRINT_REQUIRED: 'unknown',
} as const satisfies Record<Code, Group | 'valid'>

/** Returns the codes of a group. */
export function codesOf(group: Group): Code[] {
  return CODES.filter((code) => GROUP_OF[code] === group)
}

export function countOf({ counts }: Pick<Bucket, 'counts'>, codes: readonly Code[]): number {
  return codes.reduce((sum, code) => sum + (counts[code] ?? 0), 0)
}
const LEFT = 44
const TOP = 22
const VALID_HEIGHT = 120
const GAP = 36
const REJECTED_HEIGHT = 72
const BOTTOM = 24
const REJECTED_TOP = TOP + VALID_HEIGHT + GAP
const HEIGHT = REJECTED_TOP + REJECTED_HEIGHT + BOTTOM
const CARD_WIDTH = 200
/** The smallest distance between two labels of the time axis, in pixels. */
const LABEL_WIDTH = 110

const compact = new Intl.NumberFormat(undefined, { notation: 'compact' })

/** The names of buckets: a time for hours, and a day for days. */
function formatsOf(isDaily: boolean) {
  return {
    axis: new Intl.DateTimeFormat(
      undefined,
      isDaily ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' },
    ),
    card: new Intl.DateTimeFormat(
      undefined,
      isDaily
        ? { weekday: 'short', day: 'numeric', month: 'short' }
        : { weekday: 'short', hour: '2-digit', minute: '2-digit' },
    ),
  }
}

/** All counts of one bucket beside the pointer. */
function HoverCard({ bucket, label, left }: { bucket: Bucket; label: string; left: number }) {
  const rows = CODES.filter((code) => bucket.counts[code] !== undefined)
  const total = countOf(bucket, CODES)
  const valid = bucket.counts.VALID ?? 0
  return (
    <foreignObject x={left} y={0} width={CARD_WIDTH} height={HEIGHT} className="hover-frame">
      <div className="hover-card">
        <div>
          <b>{label}</b>
          <span className="dimmed">{total === 0 ? '' : `${((100 * valid) / total).toFixed(1)} % valid`}</span>
        </div>
        {rows.map((code) => (
          <div key={code}>
            <span className="legend-item" data-group={GROUP_OF[code]}>
              {text.codes[code]}
            </span>
            <span>{bucket.counts[code]?.toLocaleString()}</span>
          </div>
        ))}
      </div>
    </foreignObject>
  )
}

function Axis({ scale, top }: { scale: ReturnType<typeof scaleLinear<number>>; top: number }) {
  return (
    <>
      {scale.ticks(3).map((value) => (
        <g key={value} transform={`translate(0 ${top + scale(value)})`}>
          <line className={value === 0 ? 'chart-base' : 'chart-grid'} x1={LEFT} x2="100%" />
          <text x={LEFT - 8} dy="0.35em" textAnchor="end">
            {compact.format(value)}
          </text>
        </g>
      ))}
    </>
  )
}

export function Chart({
  buckets,
  isDaily,
  onOpen,
}: {
  buckets: readonly Bucket[]
  isDaily: boolean
  /** Opens the rejections of a bucket. */
  onOpen: (bucket: Bucket) => void
}) {
  const { ref, width } = useElementSize()
  const [hovered, setHovered] = useState<number | null>(null)
  const [first, last] = [buckets[0], buckets.at(-1)]
  if (!first || !last) return null
  // The first rendering only measures the space, so that the chart never overflows it.
  if (width === 0) return <div ref={ref} style={{ height: HEIGHT }} aria-busy="true" />
  const x = scaleTime({ domain: [first.start, last.end], range: [LEFT, width] })
  const top = (values: readonly number[]) => Math.max(4, ...values)
  const rejected = buckets.map((one) => GROUP_NAMES.map((name) => countOf(one, codesOf(name))))
  const valid = scaleLinear({
    domain: [0, top(buckets.map((one) => one.counts.VALID ?? 0))],
    range: [VALID_HEIGHT, 0],
    nice: 3,
  })
  const refused = scaleLinear({
    domain: [0, top(rejected.map((groups) => groups.reduce((sum, count) => sum + count, 0)))],
    range: [REJECTED_HEIGHT, 0],
    nice: 3,
  })
  const middle = ({ start, end }: Bucket) => (x(start) + x(end)) / 2
  const format = formatsOf(isDaily)
  const step = Math.max(1, Math.ceil((LABEL_WIDTH * buckets.length) / (width - LEFT)))
  const shown = hovered === null ? undefined : buckets[hovered]
  const onPointerMove = (event: PointerEvent<SVGSVGElement>) => {
    const at = x.invert(event.clientX - event.currentTarget.getBoundingClientRect().left)
    const index = buckets.findIndex(({ start, end }) => at >= start && at < end)
    setHovered(index === -1 ? null : index)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (move !== undefined) setHovered(Math.min(buckets.length - 1, Math.max(0, (hovered ?? -1) + move)))
    if (event.key === 'Enter' && shown) onOpen(shown)
  }
  const area = { x: middle, y: (one: Bucket) => TOP + valid(one.counts.VALID ?? 0) }
  return (
    <div ref={ref}>
      <svg
        className="chart"
        width={width}
        height={HEIGHT}
        role="img"
        aria-label="Checks by outcome"
        tabIndex={0}
        onPointerMove={onPointerMove}
        onPointerLeave={() => setHovered(null)}
        onBlur={() => setHovered(null)}
        onKeyDown={onKeyDown}
        onClick={() => shown && onOpen(shown)}
      >
        <text x={0} y={10} className="chart-title">
          Valid
        </text>
        <Axis scale={valid} top={TOP} />
        <AreaClosed data={[...buckets]} {...area} yScale={valid} y0={TOP + VALID_HEIGHT} className="chart-area" />
        <LinePath data={[...buckets]} {...area} className="chart-line" />
        <text x={0} y={REJECTED_TOP - 12} className="chart-title">
          Rejected
        </text>
        <Axis scale={refused} top={REJECTED_TOP} />
        {buckets.map((one, index) => {
          let below = 0
          const bar = Math.max(1, (x(one.end) - x(one.start)) * 0.7)
          return GROUP_NAMES.map((name, group) => {
            const count = rejected[index]?.[group] ?? 0
            below += count
            const height = REJECTED_HEIGHT - refused(count)
            return count === 0 ? null : (
              <rect
                key={name}
                className="chart-bar"
                data-group={name}
                x={middle(one) - bar / 2}
                y={REJECTED_TOP + refused(below)}
                width={bar}
                height={Math.max(1, height - 1)}
              />
            )
          })
        })}
        {buckets.map(
          (one, index) =>
            index % step === 0 &&
            x(one.start) < width - LABEL_WIDTH / 2 && (
              <text key={index} x={x(one.start)} y={HEIGHT - 6}>
                {format.axis.format(one.start)}
              </text>
            ),
        )}
        {shown && (
          <>
            <line className="chart-cursor" x1={middle(shown)} x2={middle(shown)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <circle className="chart-dot" cx={middle(shown)} cy={area.y(shown)} r={4} />
            <HoverCard
              bucket={shown}
              label={format.card.format(shown.start)}
              left={middle(shown) > width / 2 ? middle(shown) - CARD_WIDTH - 12 : middle(shown) + 12}
            />
          </>
        )}
      </svg>
    </div>
  )
}
