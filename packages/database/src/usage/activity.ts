/**
 * The changes in a license's activity (docs/api.md#d3). Claims and releases of machines record themselves (slots/slots.ts);
 * checks are written behind (write-behind.ts).
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

export interface ActivityEntry {
  readonly type: Exclude<ActivityType, 'CHECK'>
  /** Each license gets an entry; unknown ones are skipped. */
  readonly licenseIds: readonly string[]
  readonly machineId?: Uint8Array
  readonly actor: object | null
}

/** Records a change of licenses in the transaction that makes it. */
export async function recordActivity(transaction: Kysely<Database>, entry: ActivityEntry): Promise<void> {
  const { type, licenseIds, machineId = null } = entry
  const actor = entry.actor === null ? null : JSON.stringify(entry.actor)
  await sql`select record_activity(${licenseIds}::uuid[], ${type}, ${machineId}::bytea, ${actor}::jsonb)`.execute(
    transaction,
  )
}
