/**
 * Issues a license file that only one machine can use, such as a machine without a network (docs/api.md#f8). The machine holds a slot until
 * the end of the file. One transaction contains the slot, the audit entry and the event.
 */

import { claimSlot, recordFilesIssued } from '@keyward/database/kysely'
import { sql } from 'kysely'

import { audit } from '../audit/writer.ts'
import type { WriteContext } from '../context.ts'
import { ApiError, invalid, notFound } from '../http/problem.ts'
import type { Keyring } from '../keyring/keyring.ts'
import { readLicenseRow, showLicense } from '../resources/licenses/license-rows.ts'
import { fileDaysOf, selectForFile, signFile } from './issue.ts'

interface MachineFileRequest {
  machineId: string
  hostname?: string | null | undefined
  days?: number | undefined
}

/** Returns the text of the file. Rejects as `signFile` does, and with TOO_MANY_MACHINES if no slot is free. */
export async function issueMachineFile(
  context: WriteContext,
  keyring: Keyring,
  licenseId: string,
  { machineId, hostname = null, days: given }: MachineFileRequest,
): Promise<string> {
  const { db, organizationId, actor } = context
  const row = await selectForFile(context).where('licenses.id', '=', licenseId).executeTakeFirst()
  if (!row) throw notFound('license')
  const maxDays = fileDaysOf(row)
  const days = given ?? maxDays
  if (days > maxDays) throw invalid('#/days', `must be at most ${maxDays}, the fileDays of the license; got ${days}`)
  const { text, endsAt } = await signFile(row, keyring, { machineId, days })
  const machine = Buffer.from(machineId)
  await holdSlot(context, { licenseId, machineId: machine, hostname }, endsAt)
  await recordFilesIssued(db, [{ organizationId, licenseId, machineId: machine, actor }])
  // The record turns off waiting for the disk, but the slot must be durable before the file is sent (docs/api.md#s1).
  await sql`select set_config('synchronous_commit', reset_val, true) from pg_settings where name = 'synchronous_commit'`.execute(
    db,
  )
  const license = showLicense(await readLicenseRow(context, licenseId))
  const more = { machineId, endsAt: endsAt.toISOString() }
  const event = { type: 'license.file_issued', resource: license, more } as const
  const changes = { ...more, hostname }
  await audit(context, { action: event.type, resourceType: 'license', resourceId: licenseId, changes, event })
  return text
}

/** Claims a slot that ends at `endsAt`. A machine that holds a slot until its release keeps it. */
async function holdSlot(
  { db, organizationId }: WriteContext,
  claim: { licenseId: string; machineId: Buffer; hostname: string | null },
  endsAt: Date,
): Promise<void> {
  const outcome = await claimSlot(db, claim)
  switch (outcome) {
    case 'granted':
    case 'known':
    case 'recorded':
    case 'capped':
      break
    case 'limit':
      throw new ApiError('TOO_MANY_MACHINES')
    case 'suspended':
    case 'revoked':
    case 'expired':
      throw new ApiError(outcome === 'suspended' ? 'SUSPENDED' : outcome === 'revoked' ? 'REVOKED' : 'EXPIRED')
    case 'no_license':
      throw notFound('license')
    case 'started':
    case 'busy':
      throw new ApiError('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } })
    default:
      return outcome satisfies never
  }
  await sql`
    update machines set file_ends_at = greatest(file_ends_at, ${endsAt}),
      lease_ends_at = case when lease_ends_at is not null or ${outcome === 'granted'} then greatest(lease_ends_at, ${endsAt}) end
    where organization_id = ${organizationId} and license_id = ${claim.licenseId} and machine_id = ${claim.machineId}`.execute(
    db,
  )
}
