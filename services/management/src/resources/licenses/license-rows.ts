/**
 * Reads rows of licenses with their used slots, and converts them to the representation of the API. The status `expired` is computed, never
 * stored (docs/api.md#v9).
 */

import type { License, LicenseStatus } from '@keyward/contract'
import { sql } from 'kysely'

import type { Db, ReadContext } from '../../context.ts'
import { notFound } from '../../http/problem.ts'

/**
 * The number of used slots. A machine whose lease has ended holds no slot, although its row remains until the next claim (docs/api.md#l3).
 */
const USED = sql<number>`license_slots.used - (
  select count(*)::integer from machines m where m.license_id = licenses.id and m.lease_ends_at <= now())`

export const MS_PER_DAY = 86_400_000

/** Selects the licenses of all organizations. */
export function selectAllLicenses(db: Db) {
  return db
    .selectFrom('licenses')
    .innerJoin('licenseSlots', 'licenseSlots.licenseId', 'licenses.id')
    .select([
      'licenses.id',
      'licenses.key',
      'licenses.status',
      'licenses.productId',
      'licenses.customerId',
      'licenses.templateId',
      'licenses.externalId',
      'licenses.policyType',
      'licenses.maxMachines',
      'licenses.expiresAt',
      'licenses.durationDays',
      'licenses.maxReleases',
      'licenses.entitlements',
      'licenses.leaseSeconds',
      'licenses.graceDays',
      'licenses.fileDays',
      'licenses.metadata',
      'licenses.createdAt',
      'licenses.updatedAt',
      'licenses.suspendedAt',
      'licenses.revokedAt',
    ])
    .select(USED.as('used'))
}

export function selectLicenses({ db, organizationId }: ReadContext) {
  return selectAllLicenses(db).where('licenses.organizationId', '=', organizationId)
}

export type LicenseRow = Awaited<ReturnType<ReturnType<typeof selectLicenses>['executeTakeFirstOrThrow']>>

type Term = Pick<LicenseRow, 'expiresAt' | 'graceDays'>

/** Returns the end of the grace period, or null without an expiry or a grace period. */
export function graceEndOf({ expiresAt, graceDays }: Term): Date | null {
  return expiresAt === null || graceDays === 0 ? null : new Date(expiresAt.getTime() + graceDays * MS_PER_DAY)
}

/**
 * Returns the effective status at a time. Revoked and suspended take precedence over expired. A license is in its grace period from
 * `expiresAt` on, and expired from the end of the period on.
 */
export function effectiveStatus(row: Term & Pick<LicenseRow, 'status'>, nowMs: number): LicenseStatus {
  if (row.status !== 'active') return row.status
  if (row.expiresAt === null || row.expiresAt.getTime() > nowMs) return 'active'
  return (graceEndOf(row)?.getTime() ?? 0) > nowMs ? 'grace' : 'expired'
}

/** Returns whether the term of the license has not started, because no check has been `VALID` yet (docs/api.md#l1). */
export function isUnstarted(row: Pick<LicenseRow, 'expiresAt' | 'durationDays'>): boolean {
  return row.durationDays !== null && row.expiresAt === null
}

/** Returns the row. Throws NOT_FOUND. */
export async function readLicenseRow(context: ReadContext, id: string): Promise<LicenseRow> {
  const row = await selectLicenses(context).where('licenses.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('license')
  return row
}

/** Returns the row and locks it. No other transaction can change the license until this transaction ends. Throws NOT_FOUND. */
export async function lockLicenseRow(context: ReadContext, id: string): Promise<LicenseRow> {
  const row = await selectLicenses(context).where('licenses.id', '=', id).forNoKeyUpdate('licenses').executeTakeFirst()
  if (!row) throw notFound('license')
  return row
}

export function showLicense(row: LicenseRow): License {
  const {
    id,
    key,
    productId,
    customerId,
    externalId,
    templateId,
    policyType,
    maxMachines,
    durationDays,
    maxReleases,
    leaseSeconds,
    graceDays,
    fileDays,
    metadata,
    used,
  } = row
  const expiresAt = row.expiresAt?.toISOString() ?? null
  return {
    id,
    key,
    status: effectiveStatus(row, Date.now()),
    productId,
    customerId,
    externalId,
    templateId,
    policy: { type: policyType, maxMachines, expiresAt, durationDays, maxReleases, leaseSeconds, graceDays, fileDays },
    graceEndsAt: graceEndOf(row)?.toISOString() ?? null,
    machines: { used, max: maxMachines },
    entitlements: row.entitlements ?? {},
    metadata,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    suspendedAt: row.suspendedAt?.toISOString() ?? null,
    revokedAt: row.revokedAt?.toISOString() ?? null,
  }
}
