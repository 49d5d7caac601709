/**
 * Writes the audit log and the events of changes (docs/api.md#w1). One statement in the transaction of the change writes both. An entry
 * never contains a secret or the address of a check.
 */

import { uuidv7 } from '@keyward/database'
import { executeLast } from '@keyward/database/kysely'
import { sql } from 'kysely'

import type { WriteContext } from '../context.ts'
import { insertWithEvents, type NewEvent } from '../events/writer.ts'

interface AuditedChange {
  /** The resource type and the action, such as `license.suspended`. */
  action: string
  resourceType: string
  /** The id of the resource, or null for an action on many resources, such as an import. */
  resourceId: string | null
  changes?: object
  /** The values that the change replaced. */
  before?: object
  /** The event about the change, if there is one. */
  event?: NewEvent | undefined
}

/** Returns JSON text that jsonb accepts: NUL, which a machine id may contain, is replaced with U+2400. */
export function toJsonb(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' ? member.replaceAll('\u0000', '\u2400') : member,
  )
}

/** The maximum length of a list of rows in an entry, in characters of JSON. */
const MAX_LIST_CHARACTERS = 64 * 1024

/** A list of rows in an entry: the number of rows, and the first of them, up to MAX_LIST_CHARACTERS. */
export interface ListOfRows {
  count: number
  first: object[]
}

export function listOf(rows: readonly object[]): ListOfRows {
  const first: object[] = []
  let characters = 0
  for (const row of rows) {
    characters += toJsonb(row).length
    if (characters > MAX_LIST_CHARACTERS) break
    first.push(row)
  }
  return { count: rows.length, first }
}

export async function audit({ db, organizationId, actor }: WriteContext, entry: AuditedChange): Promise<void> {
  const { action, resourceType, resourceId, changes, before, event } = entry
  const json = (value: object | undefined) => sql`${value === undefined ? null : toJsonb(value)}::jsonb`
  const insertion = sql`
    insert into audit_log (id, organization_id, actor, action, resource_type, resource_id, changes, before)
    values (${uuidv7()}, ${organizationId}, ${toJsonb(actor)}, ${action}, ${resourceType}, ${resourceId}, ${json(changes)},
      ${json(before)})`
  await executeLast(db, event ? insertWithEvents(insertion, [{ ...event, organizationId, actor }]) : insertion)
}

/** Returns the row's values of the fields in `changes`. A field that the row lacks is null. */
export function valuesBefore(row: object, changes: object): object {
  const values = new Map<string, unknown>(Object.entries(row))
  return Object.fromEntries(Object.keys(changes).map((name) => [name, values.get(name) ?? null]))
}
