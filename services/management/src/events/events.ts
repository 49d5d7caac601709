/** Defines the endpoints of events (docs/api.md#w2). */

import { type Event, EVENT_TYPES, events as operations } from '@keyward/contract/management/events'
import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'

import type { ReadContext } from '../context.ts'
import { firstIdAt, type PageQuery, selectPage } from '../http/pagination.ts'
import { invalid, notFound, quote } from '../http/problem.ts'
import { implement } from '../operations/implement.ts'
import { timeOfEvent } from './body.ts'

type EventRow = Selectable<Database['events']>

interface EventQuery extends PageQuery {
  type?: string | undefined
  resourceId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

function showEvent({ id, type, organizationId, data }: EventRow): Event {
  return { id, type, timestamp: timeOfEvent(id), organizationId, data }
}

/**
 * Returns the types that match a pattern, which is one type or a group such as `license.*`. Throws INVALID_REQUEST when no type matches.
 */
function typesOf(pattern: string): readonly string[] {
  const types = EVENT_TYPES.filter((type) => type === pattern || `${type.split('.')[0]}.*` === pattern)
  if (types.length > 0) return types
  throw invalid('?type', `must be an event type or a group such as license.*; got ${quote(pattern)}`)
}

export async function listEvents({ db, organizationId }: ReadContext, query: EventQuery) {
  const { type, resourceId, from, to, ...rest } = query
  let select = db.selectFrom('events').selectAll().where('organizationId', '=', organizationId)
  if (type !== undefined) select = select.where('type', 'in', typesOf(type))
  if (resourceId !== undefined) select = select.where('resourceId', '=', resourceId)
  // The time of an event is the time in its id, so a range of times is a range of ids.
  if (from !== undefined) select = select.where('id', '>=', firstIdAt(from.getTime()))
  if (to !== undefined) select = select.where('id', '<', firstIdAt(to.getTime()))
  return selectPage({ name: 'events', organizationId }, rest, select, showEvent)
}

async function readEvent({ db, organizationId }: ReadContext, id: string): Promise<Event> {
  const row = await db
    .selectFrom('events')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) throw notFound('event')
  return showEvent(row)
}

const tag = { name: 'Events', description: 'Changes and occurrences of the last 30 days.' }

export const events = implement(tag, operations, {
  listEvents: {
    summary: 'List events',
    description:
      'Returns events of the last 30 days. An event of a check may appear a few seconds after its time. A program that polls should read the ' +
      'last minute again and skip the ids that it has already received.',
    handle: (call) => listEvents(call, call.query),
  },
  readEvent: { summary: 'Read an event', handle: (call) => readEvent(call, call.params.id) },
})
