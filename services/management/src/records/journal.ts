/**
 * What every change leaves behind: an entry of the audit log and, where a license is concerned, one of its activity feed. Both are
 * written in the transaction of the change. Never a secret, never an address.
 */
import type { Actor } from '@keyward/contract'
import { uuidv7 } from '@keyward/database'

import type { Db } from '../services.ts'

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

export const activityTypes = [
  'CHECK',
  'LICENSE_CREATED',
  'LICENSE_CHANGED',
  'LICENSE_SUSPENDED',
  'LICENSE_REINSTATED',
  'LICENSE_REVOKED',
  'LICENSE_RENEWED',
  'MACHINE_ACTIVATED',
  'MACHINE_RELEASED',
] as const
export type ActivityType = (typeof activityTypes)[number]

export interface LicenseEvent {
  type: Exclude<ActivityType, 'CHECK'>
  licenseIds: readonly string[]
  machineId?: Uint8Array
}

export async function recordActivity({ db, organizationId, actor }: Change, event: LicenseEvent): Promise<void> {
  const at = new Date()
  await db
    .insertInto('activity')
    .values(
      event.licenseIds.map((licenseId) => ({
        id: uuidv7(),
        at,
        firstAt: at,
        lastAt: at,
        organizationId,
        licenseId,
        type: event.type,
        machineId: event.machineId ?? null,
        actor: toJsonb(actor),
      })),
    )
    .execute()
}
