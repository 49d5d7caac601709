/** The checks of a period: figures, a chart in the reader's time zone, and the same figures as a table. */

import { type Code, CODES } from '@keyward/contract'
import { analytics } from '@keyward/contract/management/analytics'
import { Table } from '@mantine/core'
import { useLocation } from 'wouter'

import { useRead } from '../api/hooks.ts'
import { type Bucket, Chart, codesOf, countOf, GROUP_NAMES } from '../parts/chart.tsx'
import { ErrorState, LoadingRows, State } from '../parts/states.tsx'
import { text } from '../text.ts'

const t = {
  groups: {
    limit: 'Over the limit',
    blocked: 'Blocked by a rule',
    ended: 'Expired, suspended, revoked',
    unknown: 'Unknown key, no machine id',
  },
}
const HOUR_MS = 3_600_000

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

function useChecks(span: Span) {
  const from = startOf(span)
  const buckets = bucketsFrom(from, SPANS[span].isDaily)
  const to = buckets.at(-1)?.end ?? from
  const query = { from: from.toISOString(), to: to.toISOString(), interval: 'hour', groupBy: 'code' } as const
  const read = useRead(analytics.countChecks, { query })
  const totals: Partial<Record<Code, number>> = {}
  for (const { start, code, count } of read.data?.data ?? []) {
    if (code === undefined) continue
    totals[code] = (totals[code] ?? 0) + count
    const at = new Date(start)
    const bucket = buckets.find((one) => at >= one.start && at < one.end)
    if (bucket) bucket.counts[code] = (bucket.counts[code] ?? 0) + count
  }
  return { read, buckets, totals }
}

export function Checks({ span }: { span: Span }) {
  const [, navigate] = useLocation()
  const { read, buckets, totals } = useChecks(span)
  const all = countOf({ counts: totals }, CODES)
  const valid = totals.VALID ?? 0
  if (read.error && !read.data) return <ErrorState error={read.error} retry={() => void read.refetch()} />
  return (
    <section className="card" aria-label="Checks">
      <dl className="figures">
        <div>
          <dt>Checks</dt>
          <dd>{all.toLocaleString()}</dd>
        </div>
        <div>
          <dt>Valid</dt>
          <dd>
            {all === 0 ? '–' : ((100 * valid) / all).toFixed(1)}
            <small>%</small>
          </dd>
        </div>
        <div>
          <dt>Rejected</dt>
          <dd>{(all - valid).toLocaleString()}</dd>
        </div>
        <div>
          <dt>Over the limit</dt>
          <dd>{countOf({ counts: totals }, codesOf('limit')).toLocaleString()}</dd>
        </div>
      </dl>
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
