/** Reads lines of orders with their licenses, and converts them to the representation of the API. */

import type { License } from '@keyward/contract'
import type { Order, OrderState } from '@keyward/contract/management/orders'
import type { Database } from '@keyward/database'
import { type RawBuilder, type Selectable, sql } from 'kysely'

import type { ReadContext } from '../../context.ts'
import { anyId } from '../../crud/owned-rows.ts'
import { listPage, type Page, type PageQuery } from '../../http/pagination.ts'
import { selectLicenses, showLicense } from '../licenses/license-rows.ts'

export type OrderRow = Selectable<Database['orders']>

function show(row: OrderRow, licenses: ReadonlyMap<string, License>): Order {
  const { id, provider, orderId, line, templateId, state, quantity } = row
  return {
    id,
    provider,
    orderId,
    line,
    templateId,
    state,
    quantity,
    paidThrough: row.paidThrough?.toISOString() ?? null,
    occurredAt: row.occurredAt.toISOString(),
    // A license that was deleted is omitted.
    licenses: row.licenseIds.flatMap((licenseId) => licenses.get(licenseId) ?? []),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  }
}

export async function showOrders(context: ReadContext, rows: readonly OrderRow[]): Promise<Order[]> {
  const ids = rows.flatMap(({ licenseIds }) => licenseIds.map((id) => ({ id })))
  const found = ids.length === 0 ? [] : await selectLicenses(context).where('licenses.id', '=', anyId(ids)).execute()
  const licenses = new Map(found.map((row) => [row.id, showLicense(row)]))
  return rows.map((row) => show(row, licenses))
}

/** Returns the lines of an order in the order of their creation. The id may be another one by which the shop refers to the order. */
export async function readLines(
  context: ReadContext,
  { provider, orderId }: { provider: string; orderId: string },
): Promise<Order[]> {
  const { db, organizationId } = context
  const { rows } = await sql<OrderRow>`
    select * from orders where organization_id = ${organizationId} and provider = ${provider} and order_id = coalesce(
      (select order_id from order_references where organization_id = ${organizationId} and provider = ${provider} and reference = ${orderId}),
      ${orderId})
    order by id limit 100`.execute(db)
  return showOrders(context, rows)
}

export interface OrderQuery extends PageQuery {
  provider?: string | undefined
  state?: OrderState | undefined
}

/** Lists the lines of orders, newest first. */
export async function listOrders(context: ReadContext, query: OrderQuery): Promise<Page<Order>> {
  const { db, organizationId } = context
  const { provider, state } = query
  const filters: RawBuilder<unknown>[] = [sql`organization_id = ${organizationId}`]
  if (provider !== undefined) filters.push(sql`provider = ${provider}`)
  if (state !== undefined) filters.push(sql`state = ${state}`)
  const shown = new Map<string, Order>()
  return listPage<OrderRow, Order>(
    { name: 'orders', organizationId },
    query,
    (row) => shown.get(row.id)!,
    async (after, count) => {
      const conditions = after === null ? filters : [...filters, sql`id < ${after}`]
      const { rows } = await sql<OrderRow>`
      select * from orders where ${sql.join(conditions, sql` and `)} order by id desc limit ${count}`.execute(db)
      for (const one of await showOrders(context, rows)) shown.set(one.id, one)
      return rows
    },
  )
}
