/**
 * Issues offline license files (docs/api.md#f1, docs/api.md#f3). A file requires an active license, and is signed with the organization's
 * current key. It is valid for 30 days, or until the license expires if that is sooner. Each file is recorded in the activity of its
 * license.
 */

import { type Actor, effectiveEntitlements, type EntitlementOverrides, type Entitlements } from '@keyward/contract'
import { recordFileIssued } from '@keyward/database/kysely'
import { refreshAfterMs, signLicenseFile } from '@keyward/license-file'

import type { ReadContext } from '../http/context.ts'
import type { Dependencies } from '../http/dependencies.ts'
import { ApiError } from '../http/problem.ts'
import { type Keyring, signEd25519 } from '../keyring/keyring.ts'
import { effectiveStatus, isUnstarted, type LicenseRow } from '../resources/licenses/rows.ts'
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

async function entitlementsOf({ db, organizationId }: ReadContext, row: LicenseRow): Promise<Entitlements> {
  const product = await db
    .selectFrom('products')
    .select('entitlements')
    .where('organizationId', '=', organizationId)
    .where('id', '=', row.productId)
    .executeTakeFirstOrThrow()
  return effectiveEntitlements<EntitlementOverrides[string]>(product.entitlements ?? {}, row.entitlements ?? {})
}

interface FileContext extends ReadContext {
  dependencies: Dependencies
  actor: Actor
  /** The headers of the response. A header with the file name is added. */
  headers: Record<string, string>
}

interface FileOf {
  /** Reads the license from the snapshot, or throws. */
  find: (snapshot: ReadContext) => Promise<LicenseRow>
  /** The id of the machine that requests the file. Null when it is unknown. */
  machineId: string | null
}

interface SignedFile {
  licenseId: string
  text: string
}

/** Signs the file from one snapshot, so that its license, customer and key are consistent. */
async function signFile(context: ReadContext, find: FileOf['find'], keyring: Keyring): Promise<SignedFile> {
  const row = await find(context)
  const now = new Date()
  const status = effectiveStatus(row, now.getTime())
  if (status !== 'active') throw new ApiError(CODES[status])
  if (isUnstarted(row)) throw new ApiError('NOT_STARTED')
  const { keyId, privateKey } = await currentSigner(context, keyring)
  const payload = {
    licenseKey: row.key,
    licenseId: row.id,
    productId: row.productId,
    customerEmail: await emailOf(context, row.customerId),
    policy: { type: row.policyType, maxMachines: row.maxMachines, expiresAt: row.expiresAt?.toISOString() ?? null },
    issuedAt: now.toISOString(),
    refreshAfter: new Date(refreshAfterMs(now.getTime(), row.expiresAt?.getTime() ?? null)).toISOString(),
    kid: keyId,
    entitlements: await entitlementsOf(context, row),
  }
  return { licenseId: row.id, text: signLicenseFile(payload, privateKey, signEd25519) }
}

/** Returns the text of the file and records it in the license's activity. Throws REVOKED, SUSPENDED, EXPIRED or NOT_STARTED. */
export async function issueLicenseFile(context: FileContext, { find, machineId }: FileOf): Promise<string> {
  const { db, organizationId, actor, dependencies, headers } = context
  const { licenseId, text } = await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((snapshot) => signFile({ db: snapshot, organizationId }, find, dependencies.keyring))
  const machine = machineId === null ? null : Buffer.from(machineId)
  await recordFileIssued(db, { organizationId, licenseId, machineId: machine, actor })
  headers['content-disposition'] = `attachment; filename="license-${licenseId}.lic"`
  return text
}
