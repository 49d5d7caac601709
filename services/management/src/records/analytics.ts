/** Counts of checks by hour or day (UTC), from what the validators have written. Checks that an exclusion decided were never counted. */
import { type analytics, type analyticsQuery, code } from '@keyward/contract'
import { sql } from 'kysely'
import type { z } from 'zod'

import { invalid } from '../http/problem.ts'
import type { Db } from '../services.ts'

type Analytics = z.output<typeof analytics>

const dayMs = 86_400_000
/** At most this many buckets, so that an answer stays small: 31 days by hour, about two years by day. */
const longestMs = { hour: 31 * dayMs, day: 732 * dayMs }

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
  const show = (row: Bucket): Analytics['data'][number] => ({
    start: row.start.toISOString(),
    ...(groupBy === 'code' && { code: code.parse(row.code) }),
    ...(groupBy === 'product' && { productId: row.productId }),
    count: row.count,
  })
  return { from: from.toISOString(), to: to.toISOString(), interval, data: rows.map(show) }
}
