/**
 * Leases in verdicts that a validator decided without making a check (docs/api.md#l4). A validator knows which machines of a license
 * with leases hold slots, and only of those that checked there until when, so Postgres decides which of them do.
 */

import type { DecideResponse } from '@keyward/contract/internal'
import { sql } from 'kysely'

import type { ReadContext } from '../http/context.ts'

interface LeasedSlots {
  isHeld: boolean
  /** How many slots are held now. */
  used: number
  max: number
}

/** Returns the slots of the license with this key, or undefined when it has no leases. */
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
      and l.lease_seconds is not null and l.max_machines is not null`.execute(db)
  return rows[0]
}

/** Returns the verdict with the leases of Postgres. Reads nothing for a verdict that depends on no slot. */
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
