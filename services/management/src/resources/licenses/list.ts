/** Lists licenses by filter and order (docs/api.md#m15). The cost of a page depends only on the number of its rows. */

import type { License, LicenseSort } from '@keyward/contract'
import { type RawBuilder, sql } from 'kysely'

import type { ReadContext } from '../../context.ts'
import { anyId, hasMetadata } from '../../crud/owned-rows.ts'
import { countOf, type Page, type PageQuery, type Place, sortedPage } from '../../http/pagination.ts'
import { type LicenseRow, selectLicenses, showLicense } from './license-rows.ts'

export interface LicenseQuery extends PageQuery {
  productId?: string | undefined
  customerId?: string | undefined
  templateId?: string | undefined
  externalId?: string | undefined
  status?: License['status'] | undefined
  key?: string | undefined
  keyPrefix?: string | undefined
  email?: string | undefined
  expiresAfter?: Date | undefined
  expiresBefore?: Date | undefined
  sort?: LicenseSort | undefined
  order?: 'asc' | 'desc' | undefined
  metadata?: readonly string[] | undefined
  total?: 'true' | undefined
}

/** The SQL expression for the expiry. The index contains the same expression. A license without an expiry has the expiry `infinity`. */
const EXPIRY = sql<Date>`coalesce(expires_at, 'infinity'::timestamptz)`
const NEVER = sql`'infinity'::timestamptz`

/** The end of the license with its grace period. The index `licenses_grace_end` contains the same expression. */
export const LICENSE_END = sql<Date>`((expires_at at time zone 'UTC' + grace_days * interval '24 hours') at time zone 'UTC')`

/** The maximum of `graceDays`. With it, the index on the expiry limits the rows that are read. */
const MAX_GRACE = sql`interval '2160 hours'`

/** Returns the condition for rows with this effective status. */
function statusCondition(status: License['status']): RawBuilder<unknown> {
  switch (status) {
    case 'active':
      return sql`status = 'active' and (expires_at is null or expires_at > now())`
    case 'grace':
      return sql`status = 'active' and expires_at <= now() and expires_at > now() - ${MAX_GRACE} and ${LICENSE_END} > now()`
    case 'expired':
      return sql`status = 'active' and expires_at <= now() and ${LICENSE_END} <= now()`
    case 'suspended':
    case 'revoked':
      return sql`status = ${status}`
    default:
      return status satisfies never
  }
}

/** The license key as the index for its beginning contains it. */
export const SEARCHED_KEY = sql<string>`(upper(replace(key, ' ', '')) collate "C")`

export function escapeLike(value: string): string {
  return value.replaceAll(/[\\%_]/g, (character) => `\\${character}`)
}

/** Returns the condition for keys that begin with the text, without regard to case and blanks. */
export function keyBeginsWith(text: string): RawBuilder<unknown> {
  return sql`${SEARCHED_KEY} like ${`${escapeLike(text.replaceAll(/\s/g, '').toUpperCase())}%`}`
}

function conditionsOf(context: ReadContext, query: LicenseFilter): RawBuilder<unknown>[] {
  const { productId, customerId, templateId, externalId, status, key, keyPrefix, expiresAfter, expiresBefore } = query
  const conditions = hasMetadata('licenses', context, query.metadata)
  if (productId !== undefined) conditions.push(sql`product_id = ${productId}`)
  if (customerId !== undefined) conditions.push(sql`customer_id = ${customerId}`)
  if (templateId !== undefined) conditions.push(sql`template_id = ${templateId}`)
  if (externalId !== undefined) conditions.push(sql`external_id = ${externalId}`)
  if (key !== undefined) conditions.push(sql`key = ${key}`)
  if (keyPrefix !== undefined) conditions.push(keyBeginsWith(keyPrefix))
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
    const rows = await selectLicenses(context).where('licenses.id', '=', anyId(places)).execute()
    const byId = new Map(rows.map((row): [string, LicenseRow] => [row.id, row]))
    return places.map((place) => ({ row: byId.get(place.id) ?? null, place }))
  }
  const page = await sortedPage({ name, organizationId: context.organizationId }, query, showLicense, read)
  return query.total === undefined
    ? page
    : { ...page, total: await countOf(context.db, sql`licenses where ${matching(context, query)}`) }
}

/** The conditions of a filter, without an order and a page. */
export type LicenseFilter = Omit<LicenseQuery, keyof PageQuery | 'sort' | 'order' | 'total'>

/** Returns the condition for the organization's licenses that match the filter. */
export function matching(context: ReadContext, filter: LicenseFilter): RawBuilder<unknown> {
  const { organizationId } = context
  const ofCustomers =
    filter.email === undefined
      ? []
      : [
          sql`customer_id in (select id from customers where organization_id = ${organizationId} and lower(email) = lower(${filter.email}))`,
        ]
  return sql.join(
    [sql`organization_id = ${organizationId}`, ...ofCustomers, ...conditionsOf(context, filter)],
    sql` and `,
  )
}

interface Slice {
  sort: LicenseSort
  order: 'asc' | 'desc'
  after: Place | null
  count: number
}

/** The first columns of an index on licenses, and the value of each column, which is the same in all licenses of a page. */
interface Prefix {
  columns: string[]
  values: unknown[]
}

async function readPlaces(context: ReadContext, query: LicenseQuery, slice: Slice): Promise<Place[]> {
  const { sort, order, count } = slice
  const { email } = query
  const { organizationId } = context
  const organizationPrefix: Prefix = { columns: ['organization_id'], values: [organizationId] }
  if (email === undefined)
    return (await sql<Place>`${firstPlaces(context, query, organizationPrefix, slice)}`.execute(context.db)).rows
  const customerPrefix: Prefix = { columns: ['organization_id', 'customer_id'], values: [organizationId, sql`c.id`] }
  const direction = order === 'desc' ? sql`desc` : sql`asc`
  const byExpiry = sql`f.expiry = ${NEVER}, f.expiry ${direction}, `
  // Reads the licenses of each customer with this email address separately, so that the cost does not depend on the licenses of other
  // customers.
  const { rows } = await sql<Place>`
    select f.id, f.key from (
      select id from customers where organization_id = ${organizationId} and lower(email) = lower(${email})
    ) c cross join lateral (${firstPlaces(context, query, customerPrefix, slice)}) f
    order by ${sort === 'createdAt' ? sql`` : byExpiry}f.id ${direction} limit ${count}`.execute(context.db)
  return rows
}

const LEAST_ID = '00000000-0000-0000-0000-000000000000'
const GREATEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Returns the SQL that selects the places of the first licenses of a page, among the licenses with this prefix. */
function firstPlaces(context: ReadContext, query: LicenseQuery, prefix: Prefix, slice: Slice): RawBuilder<unknown> {
  const filters = conditionsOf(context, query)
  if (slice.sort === 'createdAt' && filters.length === 0) return placesInRange(prefix, slice)
  const equal = prefix.columns.map((column, i) => sql`${sql.ref(column)} = ${prefix.values[i]}`)
  const conditions = [...equal, ...filters]
  return slice.sort === 'expiresAt' && slice.order === 'desc'
    ? placesFromLatest(conditions, slice)
    : placesWith(conditions, slice)
}

/** Selects the licenses with an expiry, the latest first, and then those without one (docs/api.md#m15). */
function placesFromLatest(conditions: readonly RawBuilder<unknown>[], slice: Slice): RawBuilder<unknown> {
  const never = placesWith([...conditions, sql`${EXPIRY} = ${NEVER}`], slice)
  if (slice.after?.key === 'infinity') return never
  const finite = placesWith([...conditions, sql`${EXPIRY} < ${NEVER}`], slice)
  const rest = placesWith([...conditions, sql`${EXPIRY} = ${NEVER}`], { ...slice, after: null })
  return sql`
    select id, key, expiry from (select * from (${finite}) ending union all select * from (${rest}) unending) both_parts
    order by expiry = ${NEVER}, expiry desc, id desc limit ${slice.count}`
}

function placesWith(conditions: readonly RawBuilder<unknown>[], { sort, order, after, count }: Slice) {
  const isById = sort === 'createdAt'
  const direction = order === 'desc' ? sql`desc` : sql`asc`
  const beyond = order === 'desc' ? sql`<` : sql`>`
  const next = (place: Place) =>
    isById
      ? sql`id ${beyond} ${place.id}::uuid`
      : sql`(${EXPIRY}, id) ${beyond} (${place.key}::timestamptz, ${place.id}::uuid)`
  return sql`
    select id, ${isById ? sql`''` : sql`(${EXPIRY})::text`} as key, ${EXPIRY} as expiry from licenses
    where ${sql.join([...conditions, ...(after === null ? [] : [next(after)])], sql` and `)}
    order by ${isById ? sql`` : sql`${EXPIRY} ${direction}, `}id ${direction} limit ${count}`
}

/**
 * Selects the places by a range of the whole index key. With an equality on the organization and an order by id, Postgres may instead read
 * the licenses of all organizations in the order of their ids.
 */
function placesInRange({ columns, values }: Prefix, { order, after, count }: Slice) {
  const key = [...columns, 'id'].map((column) => sql.ref(column))
  const bound = (id: string) => sql.join([...values, id].map((value) => sql`${value}::uuid`))
  const least = order === 'asc' ? (after?.id ?? LEAST_ID) : LEAST_ID
  const greatest = order === 'desc' ? (after?.id ?? GREATEST_ID) : GREATEST_ID
  const direction = order === 'desc' ? sql`desc` : sql`asc`
  return sql`
    select id, '' as key, ${EXPIRY} as expiry from licenses
    where (${sql.join(key)}) > (${bound(least)}) and (${sql.join(key)}) < (${bound(greatest)})
    order by ${sql.join(key.map((column) => sql`${column} ${direction}`))} limit ${count}`
}
