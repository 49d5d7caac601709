/** Writes the audit log. An entry is written in the transaction of its change. It never contains a secret or the address of a check. */

import { uuidv7 } from '@keyward/database'

import type { WriteContext } from '../http/context.ts'

export interface AuditedChange {
  /** The resource type and the action, such as `license.suspended`. */
  action: string
  resourceType: string
  /** Null for an action on many resources, such as an import. */
  resourceId: string | null
  changes?: object
  /** The values that the change replaced. */
  before?: object
}

/** Returns JSON text that jsonb accepts. It replaces NUL, which a machine id may contain, by U+2400. */
export function toJsonb(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' ? member.replaceAll('\u0000', '\u2400') : member,
  )
}

export async function audit({ db, organizationId, actor }: WriteContext, entry: AuditedChange): Promise<void> {
  const { action, resourceType, resourceId, changes, before } = entry
  await db
    .insertInto('auditLog')
    .values({
      id: uuidv7(),
      organizationId,
      actor: toJsonb(actor),
      action,
      resourceType,
      resourceId,
      changes: changes === undefined ? null : toJsonb(changes),
      before: before === undefined ? null : toJsonb(before),
    })
    .execute()
}

/** Returns the row's values of the fields in `changes`. A field that the row lacks is null. */
export function valuesBefore(row: object, changes: object): object {
  const values = new Map<string, unknown>(Object.entries(row))
  return Object.fromEntries(Object.keys(changes).map((name) => [name, values.get(name) ?? null]))
}
