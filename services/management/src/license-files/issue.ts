/**
 * Offline license files (API document, "Offline license file"): only for an effectively active license, signed by the
 * organization's current key, good for 30 days or until the license expires if that is sooner.
 */
import { refreshAfterMs, signLicenseFile } from '@keyward/license-file'

import type { Db, Services } from '../http/context.ts'
import { Refusal } from '../http/problem.ts'
import { effectiveStatus, type LicenseRow } from '../resources/licenses/show.ts'
import { currentSigner } from '../resources/signing-keys/store.ts'

const refusals = { revoked: 'REVOKED', suspended: 'SUSPENDED', expired: 'EXPIRED' } as const

async function emailOf(db: Db, customerId: string): Promise<string> {
  const { email } = await db
    .selectFrom('customers')
    .select('email')
    .where('id', '=', customerId)
    .executeTakeFirstOrThrow()
  return email
}

/** Puts the headers of a download into `headers` and answers the file. */
export async function issueLicenseFile(
  {
    db,
    organizationId,
    services,
    headers,
  }: { db: Db; organizationId: string; services: Services; headers: Record<string, string> },
  row: LicenseRow,
): Promise<string> {
  const now = new Date()
  const status = effectiveStatus(row, now.getTime())
  if (status !== 'active') throw new Refusal(refusals[status])
  const { keyId, privateKey } = await currentSigner(db, services.keyring, organizationId)
  const payload = {
    licenseKey: row.key,
    licenseId: row.id,
    customerEmail: await emailOf(db, row.customerId),
    policy: { type: row.policyType, maxMachines: row.maxMachines, expiresAt: row.expiresAt?.toISOString() ?? null },
    issuedAt: now.toISOString(),
    refreshAfter: new Date(refreshAfterMs(now.getTime(), row.expiresAt?.getTime() ?? null)).toISOString(),
    kid: keyId,
  }
  headers['content-disposition'] = `attachment; filename="license-${row.id}.lic"`
  return signLicenseFile(payload, privateKey)
}
