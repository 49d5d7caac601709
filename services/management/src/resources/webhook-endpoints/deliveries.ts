/** Lists the deliveries of an endpoint and sends events again (docs/api.md#w7). */

import { type Delivery, MAX_REPLAYED, type replayEvents } from '@keyward/contract/management/webhooks'
import { uuidv7 } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'

import { audit } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { findRow, lockRow } from '../../crud/owned-rows.ts'
import { insertUndelivered, patternsOf } from '../../events/writer.ts'
import { firstIdAt, listPage, type Page, type PageQuery } from '../../http/pagination.ts'
import { ApiError, invalid, invalidRequest, notFound } from '../../http/problem.ts'
import { endpointRows, showEndpoint } from '../../webhooks/endpoint-rows.ts'
import type { EndpointRow } from '../../webhooks/secrets.ts'
import { unknownTypes } from './store.ts'

/** When an endpoint has this many waiting deliveries, requests cannot add more. */
const MAX_WAITING = 20_000

interface DeliveryQuery extends PageQuery {
  status?: Delivery['status'] | undefined
  eventType?: string | undefined
  eventId?: string | undefined
}

interface DeliveryRow extends Omit<Delivery, 'nextAttemptAt' | 'attempts'> {
  nextAttemptAt: Date | null
  attempts: unknown
}

const attemptsSchema = z
  .array(
    z.object({
      at: z.string().transform((at) => new Date(at).toISOString()),
      durationMs: z.int(),
      status: z.int().nullable(),
      error: z.string().nullable(),
      response: z.string().nullable(),
    }),
  )
  .nullable()

function show({ nextAttemptAt, attempts, ...row }: DeliveryRow): Delivery {
  return {
    ...row,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    attempts: attemptsSchema.parse(attempts) ?? [],
  }
}

const COLUMNS = sql`
  d.id, d.event_id, d.event_type, d.cause, d.status, d.next_attempt_at,
  (select jsonb_agg(jsonb_build_object('at', a.at, 'durationMs', a.duration_ms, 'status', a.status, 'error', a.error,
    'response', a.response) order by a.number) from webhook_attempts a where a.delivery_id = d.id) as attempts`

async function select({ db, organizationId }: ReadContext, conditions: readonly RawBuilder<unknown>[], count: number) {
  const { rows } = await sql<DeliveryRow>`
    select ${COLUMNS} from webhook_deliveries d
    where d.organization_id = ${organizationId} and ${sql.join(conditions, sql` and `)} order by d.id desc limit ${count}`.execute(
    db,
  )
  return rows
}

export async function listDeliveries(
  context: ReadContext,
  endpointId: string,
  query: DeliveryQuery,
): Promise<Page<Delivery>> {
  await findRow(endpointRows, context, endpointId)
  const { status, eventType, eventId, ...page } = query
  const list = { name: `deliveries of ${endpointId}`, organizationId: context.organizationId }
  const conditions = [
    sql`d.endpoint_id = ${endpointId}`,
    ...(status === undefined ? [] : [sql`d.status = ${status}`]),
    ...(eventType === undefined ? [] : [sql`d.event_type = ${eventType}`]),
    ...(eventId === undefined ? [] : [sql`d.event_id = ${eventId}`]),
  ]
  return listPage(list, page, show, (after, count) =>
    select(context, after === null ? conditions : [...conditions, sql`d.id < ${after}`], count),
  )
}

/**
 * Locks and returns the endpoint to which deliveries are to be added. Throws ENDPOINT_DISABLED, because nothing is sent to a disabled
 * endpoint, and RATE_LIMITED when too many deliveries are waiting.
 */
async function requireReceiving(context: WriteContext, id: string): Promise<EndpointRow> {
  const endpoint = await lockRow(endpointRows, context, id)
  if (!endpoint.enabled) throw new ApiError('ENDPOINT_DISABLED')
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::integer as waiting from (
      select from webhook_deliveries where endpoint_id = ${id} and organization_id = ${context.organizationId}
        and status = 'PENDING' and worker is null
      limit ${MAX_WAITING}) counted`.execute(context.db)
  if ((rows[0]?.waiting ?? 0) < MAX_WAITING) return endpoint
  const detail = `The endpoint has ${MAX_WAITING.toLocaleString('en')} deliveries that are not made yet. Wait until it has received some.`
  throw new ApiError('RATE_LIMITED', detail, { headers: { 'retry-after': '60' } })
}

async function addDelivery(
  context: WriteContext,
  endpointId: string,
  event: { id: string; type: string },
  cause: 'RESEND' | 'TEST',
): Promise<Delivery> {
  const { db, organizationId } = context
  const id = uuidv7()
  await db
    .insertInto('webhookDeliveries')
    .values({ id, organizationId, endpointId, eventId: event.id, eventType: event.type, cause })
    .execute()
  const [row] = await select(context, [sql`d.id = ${id}`], 1)
  return show(row!)
}

/** Sends the event of a delivery again, whether the delivery has succeeded, has failed or is pending. */
export async function resendDelivery(context: WriteContext, endpointId: string, deliveryId: string): Promise<Delivery> {
  const { db, organizationId } = context
  await requireReceiving(context, endpointId)
  const event = await db
    .selectFrom('webhookDeliveries')
    .innerJoin('events', 'events.id', 'webhookDeliveries.eventId')
    .select(['events.id', 'events.type'])
    .where('webhookDeliveries.organizationId', '=', organizationId)
    .where('events.organizationId', '=', organizationId)
    .where('webhookDeliveries.endpointId', '=', endpointId)
    .where('webhookDeliveries.id', '=', deliveryId)
    .executeTakeFirst()
  if (!event) throw notFound('delivery')
  const delivery = await addDelivery(context, endpointId, event, 'RESEND')
  const changes = { deliveryId, eventId: event.id }
  await audit(context, {
    action: 'webhook_endpoint.resent',
    resourceType: 'webhook_endpoint',
    resourceId: endpointId,
    changes,
  })
  return delivery
}

/** Sends a `ping` event to this endpoint only, even if its types do not include `ping`. */
export async function testEndpoint(context: WriteContext, endpointId: string): Promise<Delivery> {
  const { db, organizationId, actor } = context
  const endpoint = await requireReceiving(context, endpointId)
  const event = { id: uuidv7(), type: 'ping', resource: showEndpoint(endpoint), organizationId, actor } as const
  await insertUndelivered([event]).execute(db)
  const delivery = await addDelivery(context, endpointId, event, 'TEST')
  await audit(context, { action: 'webhook_endpoint.tested', resourceType: 'webhook_endpoint', resourceId: endpointId })
  return delivery
}

/** Sends the events of a period again, if the endpoint's types include them. Throws INVALID_REQUEST when there are too many events. */
export async function replay(
  context: WriteContext,
  endpointId: string,
  { from, to = new Date(), types = ['*'] }: z.output<typeof replayEvents>,
): Promise<{ deliveries: number }> {
  const unknown = unknownTypes(types)
  if (unknown.length > 0) throw invalidRequest(unknown)
  if (to <= from) throw invalid('#/to', 'must be later than from')
  const { db, organizationId } = context
  const endpoint = await requireReceiving(context, endpointId)
  const patterns = patternsOf(sql.ref('v.type'))
  const { numAffectedRows } = await sql`
    insert into webhook_deliveries (id, organization_id, endpoint_id, event_id, event_type, cause)
    select new_id(), v.organization_id, ${endpointId}, v.id, v.type, 'REPLAY' from events v
    where v.organization_id = ${organizationId} and v.id >= ${firstIdAt(from.getTime())} and v.id < ${firstIdAt(to.getTime())}
      and v.type <> 'ping' and ${endpoint.types}::text[] && ${patterns} and ${types}::text[] && array['*', v.type, split_part(v.type, '.', 1) || '.*']
    order by v.id limit ${MAX_REPLAYED + 1}`.execute(db)
  const deliveries = Number(numAffectedRows ?? 0)
  if (deliveries > MAX_REPLAYED)
    throw invalid(
      '#/to',
      `must be earlier: one request sends at most ${MAX_REPLAYED.toLocaleString('en')} events again`,
    )
  const changes = { from: from.toISOString(), to: to.toISOString(), types, deliveries }
  await audit(context, {
    action: 'webhook_endpoint.replayed',
    resourceType: 'webhook_endpoint',
    resourceId: endpointId,
    changes,
  })
  return { deliveries }
}
