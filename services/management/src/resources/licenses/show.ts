/** How a license is read from the database and shown. The status shown is the effective one: `expired` is computed, never stored. */
import type { License, LicenseStatus } from '@keyward/contract'

import type { Db } from '../../http/context.ts'

export function selectLicenses(db: Db, organizationId: string) {
  return db
    .selectFrom('licenses')
    .innerJoin('licenseSlots', 'licenseSlots.licenseId', 'licenses.id')
    .select([
      'licenses.id',
      'licenses.key',
      'licenses.status',
      'licenses.productId',
      'licenses.customerId',
      'licenses.policyType',
      'licenses.maxMachines',
      'licenses.expiresAt',
      'licenses.metadata',
      'licenses.createdAt',
      'licenses.updatedAt',
      'licenses.suspendedAt',
      'licenses.revokedAt',
      'licenseSlots.used',
    ])
    .where('licenses.organizationId', '=', organizationId)
}

export type LicenseRow = Awaited<ReturnType<ReturnType<typeof selectLicenses>['executeTakeFirstOrThrow']>>

/** Revoked before suspended before expired; expired from the very moment of `expiresAt`. */
export function effectiveStatus(row: Pick<LicenseRow, 'status' | 'expiresAt'>, nowMs: number): LicenseStatus {
  if (row.status !== 'active') return row.status
  return row.expiresAt !== null && row.expiresAt.getTime() <= nowMs ? 'expired' : 'active'
}

export function showLicense(row: LicenseRow): License {
  const { id, key, productId, customerId, policyType, maxMachines, metadata, used } = row
  return {
    id,
    key,
    status: effectiveStatus(row, Date.now()),
    productId,
    customerId,
    policy: { type: policyType, maxMachines, expiresAt: row.expiresAt?.toISOString() ?? null },
    machines: { used, max: maxMachines },
    metadata,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    suspendedAt: row.suspendedAt?.toISOString() ?? null,
    revokedAt: row.revokedAt?.toISOString() ?? null,
  }
}
