/**
 * Applies leases to verdicts of dry runs (docs/api.md#l4). A validator stores the end of a lease only for machines whose checks it has
 * decided. Postgres stores all leases, so a verdict that depends on a leased slot is completed from Postgres.
 */

import type { DecideResponse } from '@keyward/contract/dry-run'
import { sql } from 'kysely'

import type { ReadContext } from '../context.ts'

interface LeasedSlots {
  isHeld: boolean
  /** The number of slots that are held now. */
  used: number
  max: number
}

/** Returns the slots of the license with this key, or undefined when no license with a machine limit has the key. */
async function readSlots(
  { db, organizationId }: ReadContext,
  licenseKey: string,
  machineId: string | null | undefined,
): Promise<LeasedSlots | undefined> {
  const machine = Buffer.from(machineId ?? '')
  const { rows } = await sql<LeasedSlots>`
    select l.max_machines as max,
      (select count(*)::integer from machines m where m.license_id = l.id and (m.lease_ends_at is null or m.lease_ends_at > now())) as used,
      exists (select from machines m where m.license_id = l.id and m.machine_id = ${machine}
        and (m.lease_ends_at is null or m.lease_ends_at > now())) as is_held
    from licenses l where l.organization_id = ${organizationId} and l.key = ${licenseKey}
      and l.max_machines is not null`.execute(db)
  return rows[0]
}

/** Returns the verdict according to the leases in Postgres. A verdict that depends on no slot is returned unchanged, without a read. */
export async function withLeases(
  context: ReadContext,
  { licenseKey, machineId }: { licenseKey: string; machineId?: string | null | undefined },
  verdict: DecideResponse,
): Promise<DecideResponse> {
  if (!verdict.needsSlot && !verdict.holdsLease) return verdict
  const slots = await readSlots(context, licenseKey, machineId)
  if (slots === undefined) return verdict
  if (slots.isHeld) return { ...verdict, code: 'VALID', needsSlot: false, holdsLease: true }
  const code = slots.used < slots.max ? 'VALID' : 'TOO_MANY_MACHINES'
  return { ...verdict, code, needsSlot: true, holdsLease: false }
}
