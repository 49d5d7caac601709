/** The checks of a period: figures, a chart in the reader's time zone, and the same figures as a table. */

import { type Code, CODES, licenses } from '@keyward/contract'
import { analytics } from '@keyward/contract/management/analytics'
import { Table } from '@mantine/core'
import type { ReactNode } from 'react'
import { useLocation } from 'wouter'

import { useRead } from '../api/hooks.ts'
import { useMay } from '../api/me.ts'
import { type Bucket, Chart, codesOf, countOf, GROUP_NAMES } from '../parts/chart.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { ErrorState, LoadingRows, State } from '../parts/states.tsx'
import { text } from '../text.ts'

const t = {
  groups: {
    limit: 'Over the limit',
    blocked: 'Blocked by a rule',
    ended: 'Expired, suspended, revoked',
    unknown: 'Unknown key, no machine id',
  },
  before: {
    '24': 'against the 24 hours before',
    '168': 'against the 7 days before',
    '720': 'against the 30 days before',
  },
}
const HOUR_MS = 3_600_000
/** A growth of this many percent or more is not shown, because the period before had too few checks to compare with. */
const MAX_GROWTH = 1_000

export const SPANS = {
  '24': { hours: 24, isDaily: false, label: '24 hours' },
  '168': { hours: 168, isDaily: false, label: '7 days' },
  '720': { hours: 720, isDaily: true, label: '30 days' },
} as const
export type Span = keyof typeof SPANS

/** Returns the first moment of the span: a whole hour, or a local midnight if the buckets are days. */
function startOf(span: Span): Date {
  const { hours, isDaily } = SPANS[span]
  const now = new Date()
  if (isDaily) return new Date(now.getFullYear(), now.getMonth(), now.getDate() - hours / 24 + 1)
  return new Date((Math.floor(now.getTime() / HOUR_MS) - hours + 1) * HOUR_MS)
}

/** Returns the empty buckets from a time until now. Days begin at local midnight, also when the clocks change. */
function bucketsFrom(start: Date, isDaily: boolean): Bucket[] {
  const buckets: Bucket[] = []
  for (let at = start; at.getTime() <= Date.now();) {
    const end = isDaily ? new Date(at.getFullYear(), at.getMonth(), at.getDate() + 1) : new Date(at.getTime() + HOUR_MS)
    buckets.push({ start: at, end, counts: {} })
    at = end
  }
  return buckets
}

type Totals = Partial<Record<Code, number>>

function useChecks(span: Span) {
  const from = startOf(span)
  const buckets = bucketsFrom(from, SPANS[span].isDaily)
  const to = buckets.at(-1)?.end ?? from
  const query = { from: from.toISOString(), to: to.toISOString(), interval: 'hour', groupBy: 'code' } as const
  const read = useRead(analytics.countChecks, { query })
  const totals: Totals = {}
  for (const { start, code, count } of read.data?.data ?? []) {
    if (code === undefined) continue
    totals[code] = (totals[code] ?? 0) + count
    const at = new Date(start)
    const bucket = buckets.find((one) => at >= one.start && at < one.end)
    if (bucket) bucket.counts[code] = (bucket.counts[code] ?? 0) + count
  }
  return { read, buckets, totals }
}

/** Returns the totals of the period of equal length before the span. The last hour of both periods is as complete as the current hour. */
function useTotalsBefore(span: Span): Totals | undefined {
  const from = startOf(span)
  const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const before = new Date(2 * from.getTime() - hourMs)
  const query = { from: before.toISOString(), to: from.toISOString(), interval: 'day', groupBy: 'code' } as const
  const { data } = useRead(analytics.countChecks, { query })
  if (data === undefined) return undefined
  const totals: Totals = {}
  for (const { code, count } of data.data) if (code !== undefined) totals[code] = (totals[code] ?? 0) + count
  return totals
}

const signed = new Intl.NumberFormat(undefined, { signDisplay: 'exceptZero', maximumFractionDigits: 1 })

/** Says by how much a figure has changed. `unit` follows the number. */
function Change({ by, unit, isGood, after }: { by: number; unit: string; isGood: boolean | null; after: string }) {
  const tone = isGood === null || by === 0 ? undefined : isGood ? 'good' : 'bad'
  return (
    <>
      <span className="change" data-tone={tone}>{`${signed.format(by)}${unit}`}</span> {after}
    </>
  )
}

function Figure({
  name,
  value,
  unit,
  values,
  sub,
}: {
  name: string
  value: string
  unit?: string
  /** The course of the figure. */
  values?: readonly number[]
  sub?: ReactNode
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        {unit !== undefined && <small>{unit}</small>}
        {values !== undefined && <Sparkline values={values} />}
      </dd>
      {Boolean(sub) && <dd className="sub">{sub}</dd>}
    </div>
  )
}

/** The licenses that are active now, and those that were suspended. */
function ActiveLicenses() {
  const query = { limit: 1, total: 'true' } as const
  const active = useRead(licenses.listLicenses, { query: { ...query, status: 'active' } })
  const suspended = useRead(licenses.listLicenses, { query: { ...query, status: 'suspended' } })
  const { total } = active.data ?? {}
  const { total: held } = suspended.data ?? {}
  return (
    <Figure
      name="Active licenses"
      value={total?.toLocaleString() ?? '–'}
      sub={held === undefined ? undefined : `${held.toLocaleString()} suspended`}
    />
  )
}

/** The share of valid checks in percent, or null without checks. */
function shareOf(counts: Totals): number | null {
  const all = countOf({ counts }, CODES)
  return all === 0 ? null : (100 * (counts.VALID ?? 0)) / all
}

function Figures({ span, buckets, totals }: { span: Span; buckets: readonly Bucket[]; totals: Totals }) {
  const may = useMay()
  const before = useTotalsBefore(span)
  const all = countOf({ counts: totals }, CODES)
  const rejected = all - (totals.VALID ?? 0)
  const share = shareOf(totals)
  const allBefore = countOf({ counts: before ?? {} }, CODES)
  const growth = (100 * (all - allBefore)) / allBefore
  const shareBefore = shareOf(before ?? {})
  const after = t.before[span]
  const courses = buckets.map(({ counts }) => ({ all: countOf({ counts }, CODES), share: shareOf(counts) }))
  return (
    <dl className="figures">
      <Figure
        name="Checks"
        value={all.toLocaleString()}
        values={courses.map((one) => one.all)}
        sub={growth < MAX_GROWTH && <Change by={growth} unit=" %" isGood={null} after={after} />}
      />
      <Figure
        name="Valid"
        value={share === null ? '–' : share.toFixed(1)}
        unit="%"
        values={courses.flatMap((one) => one.share ?? [])}
        sub={
          share !== null &&
          shareBefore !== null && (
            <Change by={share - shareBefore} unit=" points" isGood={share >= shareBefore} after={after} />
          )
        }
      />
      <Figure
        name="Rejected"
        value={rejected.toLocaleString()}
        values={courses.map((one, index) => one.all - (buckets[index]?.counts.VALID ?? 0))}
        sub={`${countOf({ counts: totals }, codesOf('limit')).toLocaleString()} over the limit`}
      />
      {may('licenses.read') && <ActiveLicenses />}
    </dl>
  )
}

export function Checks({ span }: { span: Span }) {
  const [, navigate] = useLocation()
  const { read, buckets, totals } = useChecks(span)
  const all = countOf({ counts: totals }, CODES)
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />
  return (
    <section className="card" aria-label="Checks">
      <Figures span={span} buckets={buckets} totals={totals} />
      <div className="chart-frame">
        {read.isPending && <LoadingRows />}
        {read.data && all === 0 && (
          <State>No checks in this period. An app makes a check with POST /api/v2/license/validate.</State>
        )}
        {all > 0 && (
          <>
            <Chart
              buckets={buckets}
              isDaily={SPANS[span].isDaily}
              onOpen={() => navigate(`/activity?type=CHECK&hours=${span}`)}
            />
            <ul className="legend">
              {GROUP_NAMES.map((name) => (
                <li key={name} className="legend-item" data-group={name}>
                  {t.groups[name]} <b>{countOf({ counts: totals }, codesOf(name)).toLocaleString()}</b>
                </li>
              ))}
            </ul>
            <details>
              <summary>The same figures as a table</summary>
              <Table aria-label="Checks by outcome">
                <Table.Tbody>
                  {CODES.filter((code) => totals[code] !== undefined).map((code) => (
                    <Table.Tr key={code}>
                      <Table.Th scope="row">{text.codes[code]}</Table.Th>
                      <Table.Td className="number">{totals[code]?.toLocaleString()}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </details>
          </>
        )}
      </div>
    </section>
  )
}
