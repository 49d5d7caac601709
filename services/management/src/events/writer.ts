/**
 * Writes events (docs/api.md#w1) and their deliveries to webhook endpoints. Both are written in the transaction of the caller, so a change
 * that is rolled back leaves neither. The event of a request is inserted by the statement that inserts its audit entry, without a separate
 * round trip.
 */

import type { Actor } from '@keyward/contract'
import { type EventType, OPT_IN_TYPES } from '@keyward/contract/management/events'
import { uuidv7 } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'

import type { Db } from '../context.ts'

/** A new event about one resource, many resources or none. The schema of its type in the contract describes `data`. */
export interface NewEvent {
  type: EventType
  /** The resource as the API shows it. */
  resource?: object & { id?: string }
  /** The resource before the change. The event contains the former values of the members that differ. */
  before?: object
  /** Further members of `data`. */
  more?: object
}

/** A new event with its organization and its actor. */
export interface OwnedEvent extends NewEvent {
  organizationId: string
  actor: Actor
  /** The id of the event. Default: a new id with the current time. */
  id?: string
}

/** The size in bytes of a row without `data`, with its index entries. */
const ROW_BYTES = 256

/** The maximum size of `data` in bytes, so that a whole event has less than 20 kB. */
const MAX_DATA_BYTES = 19_500
/** The members that may be long. They are omitted, the longest first, until the event is short enough. */
const OMISSIBLE = ['metadata', 'entitlements'] as const

/** Returns the members of `before` whose value differs in `after`, except `updatedAt`. */
function previousOf(before: object, after: object): object {
  const values = new Map<string, unknown>(Object.entries(after))
  const isSame = (name: string, value: unknown) => JSON.stringify(values.get(name)) === JSON.stringify(value)
  return Object.fromEntries(
    Object.entries(before).filter(([name, value]) => name !== 'updatedAt' && !isSame(name, value)),
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** Returns `data` as JSON text of at most `MAX_DATA_BYTES`. */
export function dataOf({ resource, before, more, actor }: OwnedEvent): string {
  const data: Record<string, unknown> = {
    ...(resource && { resource: { ...resource } }),
    ...(before && { previous: previousOf(before, resource ?? {}) }),
    ...more,
    actor,
  }
  const text = JSON.stringify(data)
  return Buffer.byteLength(text) <= MAX_DATA_BYTES ? text : shortened(data)
}

function shortened(data: Readonly<Record<string, unknown>>): string {
  const omitted: string[] = []
  const long = ['resource', 'previous'].flatMap((part) =>
    OMISSIBLE.flatMap((name) => {
      const members = data[part]
      if (!isRecord(members) || !(name in members)) return []
      return { part, name, members, bytes: Buffer.byteLength(JSON.stringify(members[name])) }
    }),
  )
  let text = ''
  for (const { part, name, members } of long.toSorted((one, other) => other.bytes - one.bytes)) {
    delete members[name]
    omitted.push(`${part}.${name}`)
    text = JSON.stringify({ ...data, omitted })
    if (Buffer.byteLength(text) <= MAX_DATA_BYTES) break
  }
  return text
}

/** Returns an SQL array of the patterns that select an event type: the type, its group and `*`, or only the type if it is opt-in. */
export function patternsOf(type: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`case when ${type} = any (${OPT_IN_TYPES}::text[]) then array[${type}]
    else array['*', ${type}, split_part(${type}, '.', 1) || '.*'] end`
}

/** Returns the statement that inserts events without deliveries. `events` must not be empty. */
export function insertUndelivered(events: readonly OwnedEvent[]): RawBuilder<unknown> {
  const column = <Value>(pick: (event: OwnedEvent) => Value): Value[] => events.map(pick)
  return sql`
    insert into events (id, organization_id, type, resource_id, data, bytes, is_of_caller)
    select n.id, n.organization_id, n.type, n.resource_id, n.data::json, octet_length(n.data) + ${ROW_BYTES}, n.is_of_caller
    from unnest(
      ${column(({ id }) => id ?? uuidv7())}::uuid[], ${column(({ organizationId }) => organizationId)}::uuid[],
      ${column(({ type }) => type)}::text[], ${column(({ resource }) => resource?.id ?? null)}::uuid[],
      ${column(dataOf)}::text[], ${column(({ actor }) => actor.type !== 'SYSTEM')}::boolean[]
    ) as n (id, organization_id, type, resource_id, data, is_of_caller)`
}

/**
 * Returns the part of a statement that follows `with` and inserts the events with their deliveries. Each enabled endpoint of the
 * organization gets a delivery if its types match.
 */
function withEvents(events: readonly OwnedEvent[]): RawBuilder<unknown> {
  return sql`
    written as (${insertUndelivered(events)} returning id, organization_id, type)
    insert into webhook_deliveries (id, organization_id, endpoint_id, event_id, event_type, cause)
    select new_id(), w.organization_id, e.id, w.id, w.type, 'EVENT'
    from written w join webhook_endpoints e on e.organization_id = w.organization_id
    where e.enabled and e.types && ${patternsOf(sql.ref('w.type'))}`
}

/** Returns one statement that consists of `insertion`, which inserts another row, and the insertion of the events. */
export function insertWithEvents(insertion: RawBuilder<unknown>, events: readonly OwnedEvent[]): RawBuilder<unknown> {
  return sql`with inserted as (${insertion}), ${withEvents(events)}`
}

/** Inserts any number of events in one statement. */
export async function writeEvents(db: Db, events: readonly OwnedEvent[]): Promise<void> {
  if (events.length > 0) await sql`with ${withEvents(events)}`.execute(db)
}
