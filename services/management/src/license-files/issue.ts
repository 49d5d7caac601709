/**
 * Issues offline license files (docs/api.md#f1, docs/api.md#f3): only for a license that is active at this moment, signed with the
 * organization's current key, valid for 30 days or until the license expires if that is sooner.
 */

import { refreshAfterMs, signLicenseFile } from '@keyward/license-file'

import type { ReadContext } from '../http/context.ts'
import type { Dependencies } from '../http/dependencies.ts'
import { ApiError } from '../http/problem.ts'
import { effectiveStatus, type LicenseRow } from '../resources/licenses/rows.ts'
import { currentSigner } from '../resources/signing-keys/store.ts'

const CODES = { revoked: 'REVOKED', suspended: 'SUSPENDED', expired: 'EXPIRED' } as const

async function emailOf({ db, organizationId }: ReadContext, customerId: string): Promise<string> {
  const { email } = await db
    .selectFrom('customers')
    .select('email')
    .where('organizationId', '=', organizationId)
    .where('id', '=', customerId)
    .executeTakeFirstOrThrow()
  return email
}

interface FileContext extends ReadContext {
  dependencies: Dependencies
  /** Gets the header that gives the download its name. */
  headers: Record<string, string>
}

/** Returns the text of the file. Throws REVOKED, SUSPENDED or EXPIRED. */
export async function issueLicenseFile(context: FileContext, row: LicenseRow): Promise<string> {
  const now = new Date()
  const status = effectiveStatus(row, now.getTime())
  if (status !== 'active') throw new ApiError(CODES[status])
  const { keyId, privateKey } = await currentSigner(context, context.dependencies.keyring)
  const payload = {
    licenseKey: row.key,
    licenseId: row.id,
    customerEmail: await emailOf(context, row.customerId),
    policy: { type: row.policyType, maxMachines: row.maxMachines, expiresAt: row.expiresAt?.toISOString() ?? null },
    issuedAt: now.toISOString(),
    refreshAfter: new Date(refreshAfterMs(now.getTime(), row.expiresAt?.getTime() ?? null)).toISOString(),
    kid: keyId,
  }
  context.headers['content-disposition'] = `attachment; filename="license-${row.id}.lic"`
  return signLicenseFile(payload, privateKey)
}
