/**
 * Reads counts of checks by hour or day. Validators write the counts by hour, and leave out checks that an exclusion decides. The result has
 * an entry for each combination of an interval and a group, even for a count of 0, so a chart can show it unchanged.
 */

import { code } from '@keyward/contract'
import type { analyticsQuery, checkCounts } from '@keyward/contract/management/analytics'
import { sql } from 'kysely'
import type { z } from 'zod'

import type { ReadContext } from '../context.ts'
import { invalid } from '../http/problem.ts'
import { dayStarts } from './day-starts.ts'

type Analytics = z.output<typeof checkCounts>

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The longest period of a query: 31 days by hour, two years by day. */
const MAX_PERIOD_MS = { hour: 31 * DAY_MS, day: 732 * DAY_MS }

/** The maximum number of entries in one response. Only counts by product over a long period can exceed it. */
const MAX_ENTRIES = 50_000

/** The number of checks in one interval: all checks, or those with one code or of one product. */
interface Bucket {
  start: Date
  code: string | null
  productId: string | null
  count: number
}

export async function countChecks(
  { db, organizationId }: ReadContext,
  query: z.output<typeof analyticsQuery>,
): Promise<Analytics> {
  const { interval, groupBy, productId = null, timeZone } = query
  const to = query.to ?? new Date()
  const from = query.from ?? new Date(to.getTime() - 7 * DAY_MS)
  if (from.getTime() >= to.getTime())
    throw invalid('?from', `must be before ?to; got ${from.toISOString()} and ${to.toISOString()}`)
  if (to.getTime() - from.getTime() > MAX_PERIOD_MS[interval])
    throw invalid(
      '?from',
      `must be at most ${MAX_PERIOD_MS[interval] / DAY_MS} days before ?to when ?interval is ${interval}`,
    )
  const starts = startsOf(from, to, interval, timeZone)
  const thresholds = starts.map((start) => new Date(start))
  const { rows } = await sql<Bucket>`
    select (${thresholds}::timestamptz[])[width_bucket(hour, ${thresholds}::timestamptz[])] as start, b.code, b.product_id as "productId", sum(count)::bigint as count
    from check_counts c cross join lateral (
      select case when ${groupBy === 'code'} then c.code end as code, case when ${groupBy === 'product'} then c.product_id end as product_id
    ) b
    where organization_id = ${organizationId} and hour >= ${from} and hour < ${to}
      and (${productId}::uuid is null or c.product_id = ${productId}::uuid)
    group by 1, 2, 3 order by 1, 2, 3`.execute(db)
  const show = (start: number, group: Group, count: number): Analytics['data'][number] => ({
    start: new Date(start).toISOString(),
    ...(groupBy === 'code' && { code: code.parse(group.code) }),
    ...(groupBy === 'product' && { productId: group.productId }),
    count,
  })
  const groups = groupBy === undefined ? [{ code: null, productId: null }] : groupsOf(rows)
  if (groups.length * starts.length > MAX_ENTRIES)
    throw invalid(
      '?from',
      `selects more than ${MAX_ENTRIES.toLocaleString('en')} entries; use a shorter period, ?interval=day, or one ?productId`,
    )
  const counts = new Map(rows.map((row) => [keyOf(row.start.getTime(), row), row.count]))
  const data = starts.flatMap((start) =>
    groups.map((group) => show(start, group, counts.get(keyOf(start, group)) ?? 0)),
  )
  return { from: from.toISOString(), to: to.toISOString(), interval, data }
}

type Group = Pick<Bucket, 'code' | 'productId'>

const keyOf = (startMs: number, { code: groupCode, productId }: Group): string => `${startMs} ${groupCode} ${productId}`

/** Returns the groups of the rows in sorted order, each once. */
function groupsOf(rows: readonly Bucket[]): Group[] {
  const sorted = rows.toSorted((a, b) => (keyOf(0, a) < keyOf(0, b) ? -1 : 1))
  return [...new Map(sorted.map((row) => [keyOf(0, row), row])).values()]
}

/** Returns the start of each interval in which an hour of the period begins. */
function startsOf(from: Date, to: Date, interval: 'hour' | 'day', timeZone: string): number[] {
  const firstMs = Math.ceil(from.getTime() / HOUR_MS) * HOUR_MS
  if (firstMs >= to.getTime()) return []
  if (interval === 'day') return dayStarts(firstMs, to.getTime(), timeZone)
  return Array.from({ length: Math.ceil((to.getTime() - firstMs) / HOUR_MS) }, (_, i) => firstMs + i * HOUR_MS)
}
