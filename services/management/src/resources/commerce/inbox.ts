/** The inbox of events (docs/api.md#b5): stores the events of a signed request, lists them, and repeats an attempt on request. */

import type { shopEvent, ShopEvent } from '@keyward/contract/management/commerce'
import { type Database, uuidv7 } from '@keyward/database'
import { type Selectable, sql } from 'kysely'
import type { z } from 'zod'

import { runInside } from '../../admission/fair-gate.ts'
import { shareOf } from '../../admission/gates.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { parseJson } from '../../http/json.ts'
import { listPage, type Page, type PageQuery } from '../../http/pagination.ts'
import { ApiError, notFound, quote } from '../../http/problem.ts'
import type { Dependencies } from '../../operations/dependencies.ts'
import { requireBytes } from '../../quotas/quotas.ts'
import { type ConnectionRow, secretOf } from './secrets.ts'
import type { ReceivedEvent, SignedRequest } from './shop.ts'
import { SHOPS } from './shops.ts'

/** The size in bytes of a stored event without its text, with its index entries. */
const ROW_BYTES = 512
const MAX_ID_LENGTH = 200

type EventRow = Selectable<Database['commerceEvents']>

function show(row: EventRow): ShopEvent {
  const { id, eventId, type, state, orderId, attempts, error, nextAttemptAt, receivedAt, handledAt } = row
  return {
    id,
    eventId,
    type,
    state,
    orderId,
    attempts,
    error,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    receivedAt: receivedAt.toISOString(),
    handledAt: handledAt?.toISOString() ?? null,
  }
}

/** Returns the connection of any organization, for a request that its signature authenticates. Throws NOT_FOUND and ORGANIZATION_SUSPENDED. */
async function findConnection({ gates, readDb }: Dependencies, id: string): Promise<ConnectionRow> {
  const { rows } = await runInside(gates.strangers, '', () =>
    sql<ConnectionRow & { suspended: boolean }>`
      select c.*, o.suspended_at is not null as suspended
      from commerce_connections c join organizations o on o.id = c.organization_id where c.id = ${id}`.execute(readDb),
  )
  const [row] = rows
  if (!row) throw notFound('connection')
  if (row.suspended) throw new ApiError('ORGANIZATION_SUSPENDED')
  return row
}

function parsed(connection: ConnectionRow, request: SignedRequest): ReceivedEvent[] {
  const body = parseJson(request.bytes)
  let events: ReceivedEvent[]
  try {
    events = SHOPS[connection.shop].eventsOf(body, request)
  } catch {
    throw new ApiError('INVALID_REQUEST', `The body is not an event of ${connection.shop}.`)
  }
  for (const { id, type, isLive } of events) {
    if (id.length > MAX_ID_LENGTH || type.length > MAX_ID_LENGTH)
      throw new ApiError('INVALID_REQUEST', `The id and the type of an event have at most ${MAX_ID_LENGTH} characters.`)
    if (isLive !== null && isLive !== (connection.mode === 'live')) {
      const got = isLive ? 'live' : 'test'
      throw new ApiError(
        'INVALID_REQUEST',
        `The connection accepts ${connection.mode} events; ${quote(id)} is a ${got} event.`,
      )
    }
  }
  return events
}

/**
 * Stores the events of a request whose signature is valid. An event that is already in the inbox is not stored again. Throws NOT_FOUND,
 * UNAUTHENTICATED, ORGANIZATION_SUSPENDED, MALFORMED_JSON, INVALID_REQUEST and QUOTA_EXCEEDED.
 */
export async function receive(
  dependencies: Dependencies,
  connectionId: string,
  request: SignedRequest,
): Promise<{ stored: number }> {
  const connection = await findConnection(dependencies, connectionId)
  const receiver = SHOPS[connection.shop]
  if (!receiver.isSigned(request, secretOf(dependencies.keyring, connection), Date.now())) {
    const detail = `The header ${receiver.signatureHeader} must contain a signature of the body with the secret of the connection, made in the last 5 minutes.`
    throw new ApiError('UNAUTHENTICATED', detail)
  }
  const events = parsed(connection, request)
  const { id, organizationId } = connection
  const column = (pick: (event: ReceivedEvent) => string) => events.map(pick)
  const { gates, db } = dependencies
  const stored = await runInside(gates.writes, shareOf({ kind: 'vendor', organizationId }), async () => {
    await requireBytes({ db, organizationId }, true)
    const { numAffectedRows } = await sql`
      insert into commerce_events (id, organization_id, connection_id, event_id, type, body, bytes)
      select g.id, ${organizationId}, ${id}, g.event_id, g.type, g.body, octet_length(g.body) + ${ROW_BYTES}::integer
      from unnest(${events.map(() => uuidv7())}::uuid[], ${column((one) => one.id)}::text[], ${column(({ type }) => type)}::text[],
        ${column(({ text }) => text)}::text[]) as g (id, event_id, type, body)
      on conflict (connection_id, event_id) do nothing`.execute(db)
    return Number(numAffectedRows ?? 0)
  })
  if (stored > 0) dependencies.wakeCommerce()
  return { stored }
}

export interface EventQuery extends PageQuery {
  state?: z.output<typeof shopEvent>['state'] | undefined
}

/** Lists the events of a connection, newest first. */
export async function listEvents(
  { db, organizationId }: ReadContext,
  connectionId: string,
  { state, ...page }: EventQuery,
): Promise<Page<ShopEvent>> {
  const list = { name: `events of ${connectionId}`, organizationId }
  const filter = state === undefined ? sql`` : sql`and state = ${state}`
  return listPage<EventRow, ShopEvent>(list, page, show, async (after, count) => {
    const rest = after === null ? sql`` : sql`and id < ${after}`
    const { rows } = await sql<EventRow>`
      select id, event_id, type, state, order_id, attempts, error, next_attempt_at, received_at, handled_at from commerce_events
      where organization_id = ${organizationId} and connection_id = ${connectionId} ${filter} ${rest}
      order by id desc limit ${count}`.execute(db)
    return rows
  })
}

/** Lets the worker attempt the event now, with all attempts before it. An event that is done stays done. */
export async function retryEvent(
  { db, organizationId }: WriteContext,
  connectionId: string,
  eventId: string,
): Promise<ShopEvent> {
  const { rows } = await sql<EventRow>`
    update commerce_events set
      next_attempt_at = case when state = 'DONE' then next_attempt_at else now() end,
      attempts = case when state = 'FAILED' then 0 else attempts end,
      state = case when state in ('FAILED', 'IGNORED') then 'PENDING' else state end
    where organization_id = ${organizationId} and connection_id = ${connectionId} and id = ${eventId} returning *`.execute(
    db,
  )
  const [row] = rows
  if (!row) throw notFound('event')
  return show(row)
}

/** What an event waits for. The kind keeps an order and a price with the same id apart. */
type Awaited = 'customer' | 'order' | 'price'

/** Returns the ids as an event that waits for them stores them. */
export function waitsFor(kind: Awaited, ids: readonly string[]): string[] {
  return ids.map((id) => `${kind} ${id}`)
}

/** Lets the worker attempt the events now that wait for one of the ids. */
export async function wakeEvents(
  { db, organizationId }: WriteContext,
  kind: Awaited,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update commerce_events set next_attempt_at = now()
    where organization_id = ${organizationId} and state = 'WAITING' and waits_for && ${waitsFor(kind, ids)}::text[]`.execute(
    db,
  )
}
