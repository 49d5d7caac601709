/**
 * Writes the audit log and the events of changes (docs/api.md#w1). One statement in the transaction of the change writes both. An entry
 * never contains a secret or the address of a check.
 */

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

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

/** The maximum size in bytes of a JSON object in an entry, such as metadata. */
const MAX_OBJECT_BYTES = 1024
/** The fields with a JSON object of the vendor, which may be long. */
const OBJECTS = ['metadata', 'entitlements'] as const
/** The size in bytes of an entry without its values, with its index entries. */
const ROW_BYTES = 512

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the value with the members of every object in the order of their names, so that equal values have the same hash. */
function sorted(_key: string, value: unknown): unknown {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value
}

/** Returns the members of an object whose values differ in the other object. */
function differing(value: Record<string, unknown>, other: unknown): Record<string, unknown> {
  if (!isRecord(other)) return value
  return Object.fromEntries(Object.entries(value).filter(([name, member]) => !isDeepStrictEqual(member, other[name])))
}

/**
 * Returns the values as the entry contains them (docs/api.md#m11). Of a long object, the members that differ from the other values remain. If
 * these are still long, the SHA-256 and the size of the whole object replace it.
 */
function shortened(values: object, others: object | undefined): object {
  const shown: Record<string, unknown> = { ...values }
  const comparable = new Map<string, unknown>(Object.entries(others ?? {}))
  for (const name of OBJECTS) {
    const value = shown[name]
    if (!isRecord(value)) continue
    const text = JSON.stringify(value, sorted)
    if (Buffer.byteLength(text) <= MAX_OBJECT_BYTES) continue
    const rest = differing(value, comparable.get(name))
    const isShort = Buffer.byteLength(JSON.stringify(rest)) <= MAX_OBJECT_BYTES
    const sha256 = () => createHash('sha256').update(text).digest('hex')
    shown[name] = isShort ? rest : { sha256: sha256(), bytes: Buffer.byteLength(text) }
  }
  return shown
}

export async function audit({ db, organizationId, actor }: WriteContext, entry: AuditedChange): Promise<void> {
  const { action, resourceType, resourceId, changes, before, event } = entry
  const json = (value: object | undefined, others?: object) =>
    value === undefined ? null : toJsonb(shortened(value, others))
  const texts = { actor: toJsonb(actor), changes: json(changes, before), before: json(before, changes) }
  const bytes = Object.values(texts).reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), ROW_BYTES)
  const insertion = sql`
    insert into audit_log (id, organization_id, actor, action, resource_type, resource_id, changes, before, bytes)
    values (${uuidv7()}, ${organizationId}, ${texts.actor}, ${action}, ${resourceType}, ${resourceId}, ${texts.changes}::jsonb,
      ${texts.before}::jsonb, ${bytes}::integer)`
  await executeLast(db, event ? insertWithEvents(insertion, [{ ...event, organizationId, actor }]) : insertion)
}

/** Returns the row's values of the fields in `changes`. A field that the row lacks is null. */
export function valuesBefore(row: object, changes: object): object {
  const values = new Map<string, unknown>(Object.entries(row))
  return Object.fromEntries(Object.keys(changes).map((name) => [name, values.get(name) ?? null]))
}
