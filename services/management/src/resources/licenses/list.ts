/** Lists licenses by their filters and sorts (docs/api.md#m15). The cost of a page depends only on the number of its rows. */

import type { License, LicenseSort } from '@keyward/contract'
import { type RawBuilder, sql } from 'kysely'

import type { ReadContext } from '../../http/context.ts'
import { type Page, type PageQuery, type Place, sortedPage } from '../../http/pagination.ts'
import { type LicenseRow, selectLicenses, showLicense } from './rows.ts'

export interface LicenseQuery extends PageQuery {
  productId?: string | undefined
  customerId?: string | undefined
  status?: License['status'] | undefined
  key?: string | undefined
  email?: string | undefined
  expiresAfter?: Date | undefined
  expiresBefore?: Date | undefined
  sort?: LicenseSort | undefined
  order?: 'asc' | 'desc' | undefined
}

/** The SQL expression for the expiry. The index contains the same expression. A license without an expiry sorts last. */
const EXPIRY = sql<Date>`coalesce(expires_at, 'infinity'::timestamptz)`

/** Returns the condition for rows with this effective status. */
function statusCondition(status: License['status']): RawBuilder<unknown> {
  switch (status) {
    case 'active':
      return sql`status = 'active' and (expires_at is null or expires_at > now())`
    case 'expired':
      return sql`status = 'active' and expires_at <= now()`
    case 'suspended':
    case 'revoked':
      return sql`status = ${status}`
    default:
      return status satisfies never
  }
}

function conditionsOf({ organizationId }: ReadContext, query: LicenseQuery): RawBuilder<unknown>[] {
  const { productId, customerId, status, key, expiresAfter, expiresBefore } = query
  const conditions = [sql`organization_id = ${organizationId}`]
  if (productId !== undefined) conditions.push(sql`product_id = ${productId}`)
  if (customerId !== undefined) conditions.push(sql`customer_id = ${customerId}`)
  if (key !== undefined) conditions.push(sql`key = ${key}`)
  if (status !== undefined) conditions.push(statusCondition(status))
  if (expiresAfter !== undefined) conditions.push(sql`${EXPIRY} >= ${expiresAfter}`)
  if (expiresBefore !== undefined) conditions.push(sql`${EXPIRY} < ${expiresBefore}`)
  if (expiresAfter !== undefined || expiresBefore !== undefined) conditions.push(sql`expires_at is not null`)
  return conditions
}

/**
 * Returns one page. The rows of the page are selected before the join, because with the join, Postgres may read the licenses of all
 * organizations by their ids.
 */
export async function listLicenses(context: ReadContext, query: LicenseQuery): Promise<Page<License>> {
  const { sort = 'createdAt' } = query
  const { order = sort === 'createdAt' ? 'desc' : 'asc' } = query
  const isDefault = sort === 'createdAt' && order === 'desc'
  const name = isDefault ? 'licenses' : `licenses ${sort} ${order}`
  const read = async (after: Place | null, count: number) => {
    const places = await readPlaces(context, query, { sort, order, after, count })
    if (places.length === 0) return []
    const rows = await selectLicenses(context)
      .where(
        'licenses.id',
        'in',
        places.map(({ id }) => id),
      )
      .execute()
    const byId = new Map(rows.map((row): [string, LicenseRow] => [row.id, row]))
    // A license that was deleted after the first query is omitted.
    return places.flatMap((place) => {
      const row = byId.get(place.id)
      return row === undefined ? [] : [{ row, place }]
    })
  }
  return sortedPage({ name, organizationId: context.organizationId }, query, showLicense, read)
}

interface Slice {
  sort: LicenseSort
  order: 'asc' | 'desc'
  after: Place | null
  count: number
}

async function readPlaces(
  context: ReadContext,
  query: LicenseQuery,
  { sort, order, after, count }: Slice,
): Promise<Place[]> {
  const conditions = conditionsOf(context, query)
  const direction = order === 'desc' ? sql`desc` : sql`asc`
  const beyond = order === 'desc' ? sql`<` : sql`>`
  const isById = sort === 'createdAt'
  if (after !== null)
    conditions.push(
      isById
        ? sql`id ${beyond} ${after.id}`
        : sql`(${EXPIRY}, id) ${beyond} (${after.key}::timestamptz, ${after.id}::uuid)`,
    )
  const first = (more: readonly RawBuilder<unknown>[]) => sql`
    select id, ${isById ? sql`''` : sql`(${EXPIRY})::text`} as key, ${EXPIRY} as expiry from licenses
    where ${sql.join([...conditions, ...more], sql` and `)}
    order by ${isById ? sql`` : sql`${EXPIRY} ${direction}, `}id ${direction} limit ${count}`
  const { email } = query
  const { organizationId } = context
  const { rows } =
    email === undefined
      ? await sql<Place>`${first([])}`.execute(context.db)
      : // Reads the licenses of each customer with the address separately, so that the cost does not depend on the licenses of other customers.
        await sql<Place>`
          select f.id, f.key from (
            select id from customers where organization_id = ${organizationId} and lower(email) = lower(${email})
          ) c cross join lateral (${first([sql`customer_id = c.id`])}) f
          order by ${isById ? sql`` : sql`f.expiry ${direction}, `}f.id ${direction} limit ${count}`.execute(context.db)
  return rows
}
