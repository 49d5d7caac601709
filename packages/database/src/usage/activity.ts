/**
 * Records the changes of licenses in their activity (docs/api.md#d3). The functions of the database behind
 * slots/slots.ts record claims and releases, and write-behind.ts writes checks.
 */

import { type Kysely, sql } from 'kysely'

import type { Database } from '../schema.ts'

export type ActivityType =
  | 'CHECK'
  | 'MACHINE_ACTIVATED'
  | 'MACHINE_RELEASED'
  | 'LICENSE_CREATED'
  | 'LICENSE_CHANGED'
  | 'LICENSE_SUSPENDED'
  | 'LICENSE_REINSTATED'
  | 'LICENSE_RENEWED'
  | 'LICENSE_REVOKED'
  | 'LICENSE_KEY_REPLACED'
  | 'FILE_ISSUED'
  | 'TERM_STARTED'
  | 'RELEASE_LIMIT_REACHED'
  | 'LEASE_ENDED'

export interface ActivityEntry {
  readonly type: Exclude<ActivityType, 'CHECK' | 'FILE_ISSUED'>
  readonly organizationId: string
  /** The licenses that get an entry each. Licenses that are unknown or of another organization are skipped. */
  readonly licenseIds: readonly string[]
  readonly machineId?: Uint8Array
  readonly actor: object | null
}

/** Records a change of licenses in the transaction that makes it. */
export async function recordActivity(transaction: Kysely<Database>, entry: ActivityEntry): Promise<void> {
  const { type, organizationId, licenseIds, machineId = null } = entry
  const actor = entry.actor === null ? null : JSON.stringify(entry.actor)
  await sql`select record_activity(${organizationId}::uuid, ${licenseIds}::uuid[], ${type}, ${machineId}::bytea,
    ${actor}::jsonb)`.execute(transaction)
}

export interface IssuedFile {
  readonly organizationId: string
  readonly licenseId: string
  /** The entry contains it only if it is a machine of the license. */
  readonly machineId: Uint8Array | null
  readonly actor: object
}

/** Counts a license file in the entry of its license, machine and day. */
export async function recordFileIssued(db: Kysely<Database>, file: IssuedFile): Promise<void> {
  const { organizationId, licenseId, machineId, actor } = file
  await sql`select record_file_issued(${organizationId}::uuid, ${licenseId}::uuid, ${machineId}::bytea,
    ${JSON.stringify(actor)}::jsonb)`.execute(db)
}
