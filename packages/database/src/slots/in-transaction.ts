import { type Kysely, sql } from 'kysely'

import { FEATURES } from '../features.ts'
import type { Database } from '../schema.ts'
import { type ClaimOutcome, type ReleaseOutcome, toOutcome, toReleaseOutcome } from './slots.ts'

/**
 * Claims a slot in the caller's transaction, with the statement of validators. Waits up to half a second for the license's row, then rejects
 * with SQLSTATE 55P03. The caller must have found the license among those of its organization.
 */
export async function claimSlot(
  transaction: Kysely<Database>,
  claim: { licenseId: string; machineId: Uint8Array; hostname: string | null },
): Promise<ClaimOutcome> {
  const { licenseId, machineId, hostname } = claim
  const { rows } = await sql<{ outcome: string }>`
    select outcome from claim_slots(array[${licenseId}::uuid], array[${machineId}::bytea], array[${hostname}::text], true,
      ${FEATURES}::text[])`.execute(transaction)
  return toOutcome(rows[0]?.outcome ?? '')
}

/**
 * Releases a slot in the caller's transaction, with the statement of validators, and records the actor. The caller must have found the
 * license among those of its organization.
 */
export async function releaseSlot(
  transaction: Kysely<Database>,
  release: { licenseId: string; machineId: Uint8Array; actor: object },
): Promise<ReleaseOutcome> {
  const { licenseId, machineId, actor } = release
  const { rows } = await sql<{ outcome: string }>`
    select outcome from release_slots(array[${licenseId}::uuid], array[${machineId}::bytea], ${JSON.stringify(actor)}::jsonb)`.execute(
    transaction,
  )
  return toReleaseOutcome(rows[0]?.outcome ?? '')
}
