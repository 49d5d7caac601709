/**
 * Puts a line of an order (docs/api.md#b1): creates its licenses when it is paid, and changes them as the payment changes. The row of the
 * line is locked first, so the requests about a line run one after the other. One transaction contains the line, the customer, the licenses
 * and their events.
 */

import type { Order, putOrder } from '@keyward/contract/management/orders'
import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'
import type { z } from 'zod'

import { audit, valuesBefore } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { customerRows } from '../../crud/customer-rows.ts'
import { differences } from '../../crud/differences.ts'
import { insertRow } from '../../crud/owned-rows.ts'
import { invalid } from '../../http/problem.ts'
import { addKeyMail } from '../../mails/outbox.ts'
import { actOnLicense } from '../licenses/actions.ts'
import { selectLicenses } from '../licenses/license-rows.ts'
import { addLicense, changeLicense } from '../licenses/store.ts'
import { optionsOf } from '../licenses/template-rows.ts'
import type { TemplateRow } from '../licenses/template-values.ts'
import { type OrderRow, showOrders } from './order-rows.ts'

/** The difference between the clocks of shop and service up to which a time in the future is accepted. */
const CLOCK_TOLERANCE_MS = 300_000

interface Place {
  provider: string
  orderId: string
  line: string
}
/** A request, in which the buyer may be absent if the line is known, and the e-mail address if the customer is known by its external id. */
type Customer = z.output<typeof putOrder>['customer']
type Given = Omit<z.output<typeof putOrder>, 'customer'> & {
  customer?: Omit<Customer, 'email'> & { email?: string | undefined }
}

/** Returns the template with the id or the price. Throws INVALID_REQUEST unless exactly one template has it. */
async function soldTemplate(
  { db, organizationId }: WriteContext,
  { templateId, priceId }: Given,
): Promise<TemplateRow> {
  const condition = templateId === undefined ? sql`price_ids @> array[${priceId}]::text[]` : sql`id = ${templateId}`
  const { rows } = await sql<TemplateRow>`
    select * from license_templates where organization_id = ${organizationId} and ${condition} limit 2 for key share`.execute(
    db,
  )
  const [template] = rows
  if (template === undefined)
    throw templateId === undefined
      ? invalid('#/priceId', 'must be in the priceIds of a template')
      : invalid('#/templateId', 'must be the id of a template of this organization')
  if (rows.length > 1) throw invalid('#/priceId', 'must be in the priceIds of only one template')
  return template
}

/** Returns the id of the customer with the external id, or otherwise of the oldest one with the e-mail address. Creates a customer if there is none. */
async function buyer(context: WriteContext, { externalId, email, name }: Given['customer'] = {}): Promise<string> {
  const { db, organizationId } = context
  // The lock keeps two orders from creating the same customer.
  const lock = `${organizationId} buyer ${email?.toLowerCase() ?? ''}`
  await sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`.execute(db)
  const { rows } = await sql<{ id: string }>`
    select id from customers
    where organization_id = ${organizationId} and (external_id = ${externalId ?? null}
      or (lower(email) = lower(${email ?? null}) and (external_id is null or ${externalId ?? null}::text is null)))
    order by external_id is not distinct from ${externalId ?? null} desc, id limit 1`.execute(db)
  const [known] = rows
  if (known === undefined && email === undefined) throw invalid('#/customer/email', 'is required')
  return known?.id ?? (await insertRow(customerRows, context, { email, name, externalId })).id
}

/** Inserts the line unless it exists. Returns the locked row, and whether it is new. */
async function lockLine(
  { db, organizationId }: WriteContext,
  { provider, orderId, line }: Place,
  template: TemplateRow,
  given: Given & { occurredAt: Date },
): Promise<{ row: OrderRow; isNew: boolean }> {
  const id = uuidv7()
  await sql`
    insert into orders (id, organization_id, provider, order_id, line, template_id, state, quantity, paid_through, occurred_at)
    values (${id}, ${organizationId}, ${provider}, ${orderId}, ${line}, ${template.id}, ${given.state},
      ${given.quantity ?? 1}, ${given.paidThrough ?? null}, ${given.occurredAt})
    on conflict (organization_id, provider, order_id, line) do nothing`.execute(db)
  const { rows } = await sql<OrderRow>`
    select * from orders where organization_id = ${organizationId} and provider = ${provider} and order_id = ${orderId}
      and line = ${line} for no key update`.execute(db)
  const row = rows[0]!
  return { row, isNew: row.id === id }
}

/** Creates the missing licenses of a paid line. Returns the ids of all licenses of the line. */
async function issue(context: WriteContext, row: OrderRow, template: TemplateRow, given: Given): Promise<string[]> {
  const { quantity, paidThrough, licenseIds } = row
  const byMachines = optionsOf(template).quantity === 'machines'
  const missing = (byMachines ? 1 : quantity) - licenseIds.length
  if (missing <= 0) return licenseIds
  const customerId = await buyer(context, given.customer)
  const policy = {
    ...(paidThrough !== null && template.policyType !== 'PERPETUAL' && { expiresAt: paidThrough }),
    ...(byMachines && template.maxMachines !== null && { maxMachines: template.maxMachines * quantity }),
  }
  const created: string[] = []
  for (let i = 0; i < missing; i++)
    created.push((await addLicense(context, { templateId: template.id, customerId, policy })).id)
  await addKeyMail(context, customerId, created)
  return [...licenseIds, ...created]
}

/** Changes the existing licenses of a line as its state requires. A revoked license stays revoked. */
async function follow(context: WriteContext, row: OrderRow, before: OrderRow, template: TemplateRow): Promise<void> {
  const { refund, dispute, quantity } = optionsOf(template)
  const licenses =
    before.licenseIds.length === 0
      ? []
      : await selectLicenses(context).where('licenses.id', 'in', before.licenseIds).orderBy('licenses.id').execute()
  for (const license of licenses.filter(({ status }) => status !== 'revoked')) {
    const act = (action: Parameters<typeof actOnLicense>[2]) => actOnLicense(context, license.id, action)
    if (row.state === 'refunded' && refund === 'revoke') await act({ type: 'revoke' })
    if (row.state === 'disputed' && dispute === 'suspend') await act({ type: 'suspend' })
    if (row.state !== 'paid') continue
    if (before.state === 'disputed' && dispute === 'suspend') await act({ type: 'reinstate' })
    const policy = {
      ...(row.paidThrough !== null && license.policyType !== 'PERPETUAL' && { expiresAt: row.paidThrough }),
      ...(quantity === 'machines' &&
        row.quantity !== before.quantity &&
        template.maxMachines !== null && { maxMachines: template.maxMachines * row.quantity }),
    }
    if (policy.expiresAt !== undefined && policy.expiresAt > new Date())
      await act({ type: 'renew', expiresAt: policy.expiresAt, allowEarlier: true })
    await changeLicense(context, license.id, { policy })
  }
}

/** Returns the time of a change. A time in the future counts as now, because it would make all later changes appear to be earlier. */
function plausible(occurredAt: Date | undefined): Date {
  const isPlausible = occurredAt !== undefined && occurredAt.getTime() <= Date.now() + CLOCK_TOLERANCE_MS
  return isPlausible ? occurredAt : new Date()
}

export async function put(context: WriteContext, place: Place, input: Given): Promise<Order> {
  const given = { ...input, occurredAt: plausible(input.occurredAt) }
  const template = await soldTemplate(context, given)
  const { row: before, isNew } = await lockLine(context, place, template, given)
  const shown = async (row: OrderRow) => (await showOrders(context, [row]))[0]!
  if (!isNew && given.occurredAt < before.occurredAt) return shown(before)
  const { state, occurredAt, quantity = before.quantity, paidThrough = before.paidThrough } = given
  const after: OrderRow = { ...before, state, occurredAt, quantity, paidThrough, templateId: template.id }
  if (!isNew) await follow(context, after, before, template)
  const licenseIds = state === 'paid' ? await issue(context, after, template, given) : before.licenseIds
  const changed = differences(before, { templateId: template.id, state, quantity, paidThrough, occurredAt, licenseIds })
  if (changed === null && !isNew) return shown(before)
  const { rows } = await sql<OrderRow>`
    update orders set template_id = ${template.id}, state = ${state}, quantity = ${quantity}, paid_through = ${paidThrough},
      occurred_at = ${occurredAt}, license_ids = ${licenseIds}, updated_at = now()
    where id = ${before.id} and organization_id = ${context.organizationId} returning *`.execute(context.db)
  await audit(context, {
    action: isNew ? 'order.created' : 'order.changed',
    resourceType: 'order',
    resourceId: before.id,
    changes: { ...place, state, quantity, paidThrough, licenseIds },
    ...(!isNew && changed !== null && { before: valuesBefore(before, changed) }),
  })
  return shown(rows[0]!)
}
