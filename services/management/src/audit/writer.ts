/**
 * What every change leaves behind: an entry of the audit log and, where a license is concerned, one of its activity feed. Both are
 * written in the transaction of the change. Never a secret, never an address.
 */
import type { Actor } from '@keyward/contract'
import { uuidv7 } from '@keyward/database'
import { type ActivityEntry, recordActivity } from '@keyward/database/kysely'

import type { Db } from '../http/context.ts'

/** A change under way: where, whose, by whom. */
export interface Change {
  db: Db
  organizationId: string
  actor: Actor
}

export interface AuditedChange {
  /** Such as `license.suspended`. */
  action: string
  resourceType: string
  resourceId: string | null
  changes?: object
}

/** JSON that jsonb takes: NUL, which a machine id may hold, is written as its symbol. */
export function toJsonb(value: object): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'string' ? member.replaceAll('\u0000', '\u2400') : member,
  )
}

export async function audit({ db, organizationId, actor }: Change, entry: AuditedChange): Promise<void> {
  const { action, resourceType, resourceId, changes } = entry
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
    })
    .execute()
}

/** A state change of licenses, for their activity feeds. */
export async function recordChange(
  { db, actor }: Change,
  type: ActivityEntry['type'],
  licenseIds: readonly string[],
  machineId?: Uint8Array,
): Promise<void> {
  await recordActivity(db, { type, licenseIds, actor, ...(machineId && { machineId }) })
}
