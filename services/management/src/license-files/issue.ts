/**
 * Issues offline license files (docs/api.md#f1, docs/api.md#f3). A file requires an active license, and is signed with the organization's
 * current key. Each file is recorded in the activity of its license.
 */

import {
  type Actor,
  DEFAULT_FILE_DAYS,
  effectiveEntitlements,
  type EntitlementOverrides,
  filesEndWithLease,
} from '@keyward/contract'
import { recordFilesIssued } from '@keyward/database/kysely'
import { bytesToSign, refreshAfterMs } from '@keyward/license-file'

import type { ReadContext } from '../context.ts'
import { ApiError } from '../http/problem.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { Dependencies } from '../operations/dependencies.ts'
import { effectiveStatus, graceEndOf, isUnstarted, MS_PER_DAY } from '../resources/licenses/license-rows.ts'

const CODES = { revoked: 'REVOKED', suspended: 'SUSPENDED', expired: 'EXPIRED' } as const

/**
 * Selects licenses with the data that their files contain and with the current signing key. One statement reads one snapshot, so license,
 * customer and key are consistent.
 */
export function selectForFile({ db, organizationId }: ReadContext) {
  return db
    .selectFrom('licenses')
    .where('licenses.organizationId', '=', organizationId)
    .innerJoin('customers', 'customers.id', 'licenses.customerId')
    .innerJoin('products', 'products.id', 'licenses.productId')
    .innerJoin('signingKeys', (join) =>
      join.onRef('signingKeys.organizationId', '=', 'licenses.organizationId').on('signingKeys.retiredAt', 'is', null),
    )
    .select([
      'licenses.id',
      'licenses.organizationId',
      'licenses.key',
      'licenses.productId',
      'licenses.policyType',
      'licenses.maxMachines',
      'licenses.status',
      'licenses.expiresAt',
      'licenses.durationDays',
      'licenses.graceDays',
      'licenses.fileDays',
      'licenses.leaseSeconds',
      'licenses.entitlements',
      'customers.email',
      'products.entitlements as productEntitlements',
      'signingKeys.keyId',
      'signingKeys.masterKeyId',
      'signingKeys.privateKeyEncrypted',
    ])
}

export type FileRow = Awaited<ReturnType<ReturnType<typeof selectForFile>['executeTakeFirstOrThrow']>>

interface FileContext extends ReadContext {
  dependencies: Dependencies
  actor: Actor
  /** The headers of the response, to which `content-disposition` with the file name is added. */
  headers: Record<string, string>
  isHead: boolean
}

/** Returns the `Content-Disposition` header of a license file. */
export function dispositionOf(licenseId: string): string {
  return `attachment; filename="license-${licenseId}.lic"`
}

/** The machine that gets a file. */
export type Bearer =
  /** The file can be used only by this machine, for so many days. */
  | { machineId: string; days: number }
  /** The file can be used by every machine of the license. `leaseEnd` is the end of the lease of the machine that requested it. */
  | { leaseEnd: Date | null }

export function fileDaysOf({ fileDays }: FileRow): number {
  return fileDays ?? DEFAULT_FILE_DAYS
}

/**
 * Returns the lifetime of a file in milliseconds, unless the license ends sooner (docs/api.md#f2). A file that belongs to no lease is valid as
 * long as a new one.
 */
function lifetimeMs(row: FileRow, nowMs: number, bearer: Bearer | null): number {
  if (bearer !== null && 'days' in bearer) return bearer.days * MS_PER_DAY
  if (!filesEndWithLease(row)) return fileDaysOf(row) * MS_PER_DAY
  return bearer === null || bearer.leaseEnd === null
    ? (row.leaseSeconds ?? 0) * 1_000
    : bearer.leaseEnd.getTime() - nowMs
}

/**
 * Returns the text of the file and its end. Rejects with REVOKED, SUSPENDED, EXPIRED or NOT_STARTED, and UNAVAILABLE when this process lacks
 * the master key that seals the signing key.
 */
export async function signFile(
  row: FileRow,
  keyring: Keyring,
  bearer: Bearer | null,
): Promise<{ text: string; endsAt: Date }> {
  const now = new Date()
  const status = effectiveStatus(row, now.getTime())
  if (status !== 'active' && status !== 'grace') throw new ApiError(CODES[status])
  if (isUnstarted(row)) throw new ApiError('NOT_STARTED')
  if (!keyring.canOpen(row.masterKeyId))
    throw new ApiError('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } })
  const graceEnd = graceEndOf(row)
  const licenseEndMs = (graceEnd ?? row.expiresAt)?.getTime() ?? null
  const endsAt = new Date(refreshAfterMs(now.getTime(), licenseEndMs, lifetimeMs(row, now.getTime(), bearer)))
  const payload = {
    licenseKey: row.key,
    licenseId: row.id,
    productId: row.productId,
    ...(bearer !== null && 'machineId' in bearer && { machineId: bearer.machineId }),
    customerEmail: row.email,
    policy: {
      type: row.policyType,
      maxMachines: row.maxMachines,
      expiresAt: row.expiresAt?.toISOString() ?? null,
      ...(graceEnd !== null && { graceEndsAt: graceEnd.toISOString() }),
    },
    issuedAt: now.toISOString(),
    refreshAfter: endsAt.toISOString(),
    kid: row.keyId,
    entitlements: effectiveEntitlements<EntitlementOverrides[string]>(
      row.productEntitlements ?? {},
      row.entitlements ?? {},
    ),
  }
  const bytes = Buffer.from(bytesToSign(payload))
  const signature = await keyring.sign(row, bytes)
  return { text: `${bytes.toString('base64url')}.${signature.toString('base64url')}`, endsAt }
}

/**
 * Returns the text of the file, and records in the license's activity that the file was issued. A HEAD issues no file, so it records
 * nothing. Throws as `signFile` does.
 */
export async function issueLicenseFile(context: FileContext, row: FileRow): Promise<string> {
  const { db, organizationId, actor, dependencies, headers, isHead } = context
  const { text } = await signFile(row, dependencies.keyring, null)
  if (!isHead) await recordFilesIssued(db, [{ organizationId, licenseId: row.id, machineId: null, actor }])
  headers['content-disposition'] = dispositionOf(row.id)
  return text
}
