/**
 * Counts of checks by hour or day (UTC), from what the validators have written. Checks that an exclusion decided were never
 * counted. Every bucket is told, also an empty one, of each code or product that occurs, so that a chart needs nothing else.
 */
import { type analytics, type analyticsQuery, code } from '@keyward/contract'
import { sql } from 'kysely'
import type { z } from 'zod'

import type { Db } from '../http/context.ts'
import { invalid } from '../http/problem.ts'

type Analytics = z.output<typeof analytics>

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** At most this many buckets, so that an answer stays small: 31 days by hour, about two years by day. */
const longestMs = { hour: 31 * dayMs, day: 732 * dayMs }

/** What one answer may hold; more is a lot of products over a long time by the hour. */
const mostRows = 50_000

interface Bucket {
  start: Date
  code: string | null
  productId: string | null
  count: number
}

export async function countChecks(
  db: Db,
  organizationId: string,
  query: z.output<typeof analyticsQuery>,
): Promise<Analytics> {
  const { interval, groupBy, productId = null } = query
  const to = query.to ?? new Date()
  const from = query.from ?? new Date(to.getTime() - 7 * dayMs)
  if (from.getTime() >= to.getTime()) throw invalid('?from', 'must lie before `to`')
  if (to.getTime() - from.getTime() > longestMs[interval])
    throw invalid('?from', `with the interval ${interval} at most ${longestMs[interval] / dayMs} days are counted`)
  const { rows } = await sql<Bucket>`
    select date_trunc(${interval}, hour, 'UTC') as start, b.code, b.product_id as "productId", sum(count)::bigint as count
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
  const starts = startsOf(from, to, interval)
  if (groups.length * starts.length > mostRows)
    throw invalid('?from', `more than ${mostRows} counts; ask for a shorter time, by day, or for one product`)
  const counts = new Map(rows.map((row) => [keyOf(row.start.getTime(), row), row.count]))
  const data = starts.flatMap((start) =>
    groups.map((group) => show(start, group, counts.get(keyOf(start, group)) ?? 0)),
  )
  return { from: from.toISOString(), to: to.toISOString(), interval, data }
}

type Group = Pick<Bucket, 'code' | 'productId'>

const keyOf = (startMs: number, { code: ofCode, productId }: Group): string => `${startMs} ${ofCode} ${productId}`

/** Each group once, in the order of the rows. */
function groupsOf(rows: readonly Bucket[]): Group[] {
  const sorted = rows.toSorted((a, b) => (keyOf(0, a) < keyOf(0, b) ? -1 : 1))
  return [...new Map(sorted.map((row) => [keyOf(0, row), row])).values()]
}

/** The starts of all buckets that have an hour in the span. */
function startsOf(from: Date, to: Date, interval: 'hour' | 'day'): number[] {
  const widthMs = interval === 'hour' ? hourMs : dayMs
  const firstHourMs = Math.ceil(from.getTime() / hourMs) * hourMs
  const firstMs = Math.floor(firstHourMs / widthMs) * widthMs
  return Array.from(
    { length: Math.max(0, Math.ceil((to.getTime() - firstMs) / widthMs)) },
    (_, i) => firstMs + i * widthMs,
  )
}
