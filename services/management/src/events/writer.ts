/**
 * Writes events (docs/api.md#w1). An event is written in the transaction of its change, so one that is rolled back leaves none. The
 * statement for an event is a part of another statement, so an event costs no round trip of its own.
 */

import type { Actor } from '@keyward/contract'
import type { EventType } from '@keyward/contract/management/events'
import { uuidv7 } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'

import type { Db } from '../http/context.ts'

/** An event about a resource, many resources or none. The schema of its type in the contract describes `data`. */
export interface NewEvent {
  type: EventType
  /** The resource as the API shows it. */
  resource?: object & { id?: string }
  /** The resource before the change; the event contains the members that differ. */
  before?: object
  /** Further members of `data`. */
  more?: object
}

/** An event of one organization, with who caused it. */
export interface OwnedEvent extends NewEvent {
  organizationId: string
  actor: Actor
  /** Default: a new id, whose time is now. */
  id?: string
}

/** With the envelope of an event, less than 20 kB. */
const MAX_DATA_BYTES = 19_500
/** Members that may be long. They are left out, the longest first, until the event is short enough. */
const OMISSIBLE = ['metadata', 'entitlements'] as const

/** Returns the members of `before` that `after` has with another value. The time of the change is no change. */
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

/** Returns the statement that inserts the events, to be used alone or as a part of another statement. There must be at least one. */
export function insertEvents(events: readonly OwnedEvent[]): RawBuilder<unknown> {
  const column = <Value>(pick: (event: OwnedEvent) => Value): Value[] => events.map(pick)
  return sql`
    insert into events (id, organization_id, type, resource_id, data)
    select n.id, n.organization_id, n.type, n.resource_id, n.data::json
    from unnest(
      ${column(({ id }) => id ?? uuidv7())}::uuid[], ${column(({ organizationId }) => organizationId)}::uuid[],
      ${column(({ type }) => type)}::text[], ${column(({ resource }) => resource?.id ?? null)}::uuid[],
      ${column(dataOf)}::text[]
    ) as n (id, organization_id, type, resource_id, data)`
}

/** Inserts any number of events in one statement. */
export async function writeEvents(db: Db, events: readonly OwnedEvent[]): Promise<void> {
  if (events.length > 0) await insertEvents(events).execute(db)
}
