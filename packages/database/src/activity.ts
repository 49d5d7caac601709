// Entries of a license's activity that are no checks. Machines that come and go note themselves (slots.ts); checks come
// with what validators write behind.

import { type Kysely, sql } from 'kysely'

import type { Database } from './schema.ts'

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

/** Notes a state change in the transaction that makes it. A license that does not exist is passed over. */
export async function recordActivity(
  transaction: Kysely<Database>,
  entry: { readonly licenseId: string; readonly type: Exclude<ActivityType, 'CHECK'>; readonly actor: object | null },
): Promise<void> {
  const actor = entry.actor === null ? null : JSON.stringify(entry.actor)
  await sql`select record_activity(${entry.licenseId}::uuid, ${entry.type}, null, ${actor}::jsonb)`.execute(transaction)
}
