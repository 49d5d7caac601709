/**
 * Translates an event of a shop into changes of orders (docs/api.md#b6), in the transaction of its caller. The lines of an order are put as
 * `PUT /orders` puts them.
 */

import { name as customerName, newEmail } from '@keyward/contract/management/common'
import { MAX_QUANTITY, type OrderState } from '@keyward/contract/management/orders'
import { text } from '@keyward/contract/text'
import { sql } from 'kysely'
import { z } from 'zod'

import type { WriteContext } from '../../context.ts'
import { customerRows } from '../../crud/customer-rows.ts'
import { changeRow, insertRow } from '../../crud/owned-rows.ts'
import { ApiError, invalid } from '../../http/problem.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import { put } from '../orders/put.ts'
import { waitsFor, wakeEvents } from './inbox.ts'
import type { ConnectionRow } from './secrets.ts'
import type { Buyer, Line, OrderChange } from './shop.ts'
import { SHOPS } from './shops.ts'

/** The result of an attempt. An event that waits names the ids it waits for, and the reason. */
export type Outcome =
  | { state: 'DONE' | 'IGNORED'; orderId: string | null }
  | { state: 'WAITING'; orderId: string | null; waitsFor: string[]; isPrice: boolean; reason: string }

/** Returns the name of the shop in the paths of orders. Test orders have another name, so they never mix with live ones. */
export function providerOf({ shop, mode }: ConnectionRow): string {
  return mode === 'live' ? shop : `${shop}-test`
}

/**
 * Returns the id under which the order is stored, and stores all ids of the change as references to it. Ids that the shop has used apart until
 * now are joined, unless both have lines. Only new references wake events, so two events that wait for the same order do not wake each other.
 */
async function linkOrder(context: WriteContext, provider: string, change: OrderChange): Promise<string> {
  const { db, organizationId } = context
  const ids = [...new Set([change.order, ...change.references].filter((one) => typeof one === 'string'))]
  const { rows } = await sql<{ reference: string; orderId: string; hasLines: boolean }>`
    select r.reference, r.order_id, exists (select from orders o where o.organization_id = r.organization_id
      and o.provider = r.provider and o.order_id = r.order_id) as has_lines
    from order_references r
    where r.organization_id = ${organizationId} and r.provider = ${provider} and r.reference = any(${ids}::text[])`.execute(
    db,
  )
  const named = rows.find(({ reference }) => reference === change.order) ?? rows[0]
  const known = rows.find(({ hasLines }) => hasLines) ?? (change.lines === null ? named : undefined)
  const orderId = known?.orderId ?? change.order
  const empty = rows.filter((row) => !row.hasLines && row.orderId !== orderId).map((row) => row.orderId)
  if (empty.length > 0)
    await sql`
      update order_references set order_id = ${orderId}
      where organization_id = ${organizationId} and provider = ${provider} and order_id = any(${empty}::text[])`.execute(
      db,
    )
  const added = await sql`
    insert into order_references (organization_id, provider, reference, order_id)
    select ${organizationId}, ${provider}, id, ${orderId} from unnest(${ids}::text[]) id on conflict do nothing`.execute(
    db,
  )
  if (empty.length > 0 || (added.numAffectedRows ?? 0n) > 0n) await wakeEvents(context, 'order', ids)
  return orderId
}

/** The maximum number of references of an order whose events continue with its first lines. The others continue on their schedule. */
const MAX_REFERENCES = 1_000

/** Lets the worker attempt the events that have waited for the first lines of the order. */
async function wakeEventsOf(context: WriteContext, provider: string, orderId: string): Promise<void> {
  const { db, organizationId } = context
  const { rows } = await sql<{ reference: string }>`
    select reference from order_references
    where organization_id = ${organizationId} and provider = ${provider} and order_id = ${orderId} limit ${MAX_REFERENCES}`.execute(
    db,
  )
  await wakeEvents(
    context,
    'order',
    rows.map(({ reference }) => reference),
  )
}

/** Returns the lines of the order in this organization. */
async function linesOf({ db, organizationId }: WriteContext, provider: string, orderId: string): Promise<OrderRow[]> {
  const { rows } = await sql<OrderRow>`
    select * from orders where organization_id = ${organizationId} and provider = ${provider} and order_id = ${orderId}
    order by id`.execute(db)
  return rows
}

/** Changes the state of all lines of an order. A cancellation has no effect on licenses, so a late payment of the same order still counts. */
async function putAll(
  context: WriteContext,
  rows: readonly OrderRow[],
  state: OrderState,
  occurredAt: Date,
): Promise<void> {
  for (const row of rows) {
    const { provider, orderId, line, templateId } = row
    if (state === 'canceled' && row.state !== 'paid') continue
    const at = state === 'canceled' ? row.occurredAt : occurredAt
    await put(context, { provider, orderId, line }, { templateId, state, occurredAt: at })
  }
}

/** Returns the prices that templates list. */
async function mappedPrices({ db, organizationId }: WriteContext, prices: readonly string[]): Promise<Set<string>> {
  const { rows } = await sql<{ price: string }>`
    select distinct price from license_templates, unnest(price_ids) price
    where organization_id = ${organizationId} and price_ids && ${prices}::text[] and price = any(${prices}::text[])`.execute(
    db,
  )
  return new Set(rows.map(({ price }) => price))
}

async function hasCustomer({ db, organizationId }: WriteContext, externalId: string): Promise<boolean> {
  const { rows } = await sql`
    select from customers where organization_id = ${organizationId} and external_id = ${externalId}`.execute(db)
  return rows.length > 0
}

/** The maximum number of lines of an event, and of what they sell together. Other organizations wait while an event is handled. */
const MAX_LINES = 100
const MAX_SOLD = 500

/** The limits of `PUT /orders`. */
const storable = z.object({
  orderId: text(200),
  line: text(100),
  quantity: z.int().min(1).max(MAX_QUANTITY),
})
const buyer = z.object({
  externalId: text(200).optional(),
  email: newEmail.optional(),
  name: customerName.nullish().catch(null),
})

/** Stores the address of a customer of the shop, so that a later order finds it by the customer's id. */
async function storeCustomer(context: WriteContext, given: Required<Buyer>): Promise<void> {
  const { db, organizationId } = context
  const { externalId = '', email = '', name } = buyer.parse(given)
  const { rows } = await sql<{ id: string }>`
    select id from customers where organization_id = ${organizationId}
      and (external_id = ${externalId} or (external_id is null and lower(email) = lower(${email})))
    order by external_id is not distinct from ${externalId} desc, id limit 1`.execute(db)
  const values = { externalId, email, ...(typeof name === 'string' && { name }) }
  await (rows[0] ? changeRow(customerRows, context, rows[0].id, values) : insertRow(customerRows, context, values))
  await wakeEvents(context, 'customer', [externalId])
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Returns the template or the price of a line as `PUT /orders` takes it. Throws INVALID_REQUEST. */
function soldBy({ template, priceId }: Line): { templateId: string } | { priceId: string } {
  if (template === undefined) {
    if (priceId !== undefined) return { priceId }
    throw invalid('keyward_template', 'is required in the metadata of the shop, because the event names no price')
  }
  if (UUID.test(template)) return { templateId: template.toLowerCase() }
  throw invalid('keyward_template', 'in the metadata of the shop must be the id of a template, or none')
}

/** Puts the lines whose templates are known. Returns the prices of the other ones. */
async function putLines(
  context: WriteContext,
  connection: ConnectionRow,
  orderId: string,
  change: OrderChange & { lines: readonly Line[]; state: OrderState },
): Promise<string[]> {
  const { state, occurredAt, customer } = change
  const lines = change.lines.filter(({ template }) => template !== 'none')
  const sold = lines.reduce((sum, { quantity }) => sum + quantity, 0)
  if (lines.length > MAX_LINES || sold > MAX_SOLD)
    throw new ApiError(
      'INVALID_REQUEST',
      `An event must have at most ${MAX_LINES} lines with a total quantity of at most ${MAX_SOLD}; got ${lines.length} lines and ${sold}.`,
    )
  const prices = lines.flatMap(({ template, priceId }) =>
    template === undefined && priceId !== undefined ? [priceId] : [],
  )
  const mapped = prices.length === 0 ? new Set<string>() : await mappedPrices(context, prices)
  for (const one of lines) {
    const product = soldBy(one)
    if ('priceId' in product && !mapped.has(product.priceId)) continue
    const { paidThrough } = one
    const { line, quantity } = storable.parse({ ...one, orderId })
    const given = {
      ...product,
      state,
      occurredAt,
      quantity,
      paidThrough,
      ...(customer && { customer: buyer.parse(customer) }),
    }
    await put(context, { provider: providerOf(connection), orderId, line }, given)
  }
  return prices.filter((price) => !mapped.has(price))
}

/** Applies the event. Throws the errors of `put`, and a ZodError if the event lacks a field. */
export async function handleEvent(context: WriteContext, connection: ConnectionRow, event: unknown): Promise<Outcome> {
  const translation = SHOPS[connection.shop].translate(event)
  if (translation === null) return { state: 'IGNORED', orderId: null }
  if (!('order' in translation)) {
    await storeCustomer(context, translation.customer)
    return { state: 'DONE', orderId: null }
  }
  const provider = providerOf(connection)
  const { state, lines, customer, occurredAt } = translation
  const orderId = await linkOrder(context, provider, translation)
  if (state === null) return { state: 'DONE', orderId }
  if (!connection.states.includes(state)) return { state: 'IGNORED', orderId }
  const stored = await linesOf(context, provider, orderId)
  if (lines === null) {
    const reason = `The order ${translation.order} has not been paid yet.`
    if (stored.length === 0)
      return { state: 'WAITING', orderId, waitsFor: waitsFor('order', [translation.order]), isPrice: false, reason }
    await putAll(context, stored, state, occurredAt)
    return { state: 'DONE', orderId }
  }
  const externalId = customer?.externalId
  if (
    customer?.email === undefined &&
    stored.length === 0 &&
    externalId !== undefined &&
    !(await hasCustomer(context, externalId))
  ) {
    const reason = `The e-mail address of the customer ${externalId} is not known yet.`
    return { state: 'WAITING', orderId, waitsFor: waitsFor('customer', [externalId]), isPrice: false, reason }
  }
  const unknown = await putLines(context, connection, orderId, { ...translation, lines, state })
  if (stored.length === 0 && lines.length > unknown.length) await wakeEventsOf(context, provider, orderId)
  if (unknown.length === 0 || connection.unknownPrices === 'ignore')
    return { state: lines.length > unknown.length ? 'DONE' : 'IGNORED', orderId }
  const reason = `No template lists the price ${unknown.join(', ')}.`
  return { state: 'WAITING', orderId, waitsFor: waitsFor('price', unknown), isPrice: true, reason }
}
