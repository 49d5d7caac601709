/**
 * Performs the actions on a license (docs/api.md#m8, docs/api.md#v10): suspend, reinstate, renew, extend, revoke and replace the key.
 * Renewal and extension change the expiry. Revocation is final. An action that is already in effect changes nothing. A revoked license accepts only another
 * revocation.
 */

import { type License, MAX_DURATION_DAYS } from '@keyward/contract'
import type { EventType } from '@keyward/contract/management/events'
import type { ActivityEntry } from '@keyward/database/kysely'

import { recordLicenseActivity } from '../../activity/writer.ts'
import { audit, valuesBefore } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { updateRow } from '../../crud/owned-rows.ts'
import { ApiError, invalid } from '../../http/problem.ts'
import { generateLicenseKey } from './key.ts'
import { graceEndOf, type LicenseRow, lockLicenseRow, MS_PER_DAY, readLicenseRow, showLicense } from './license-rows.ts'
import { licenseRows } from './store.ts'

export type Action =
  | { type: 'suspend'; reason?: string | undefined }
  | { type: 'reinstate' }
  | { type: 'revoke'; reason?: string | undefined }
  | { type: 'renew'; expiresAt: Date; allowEarlier?: boolean | undefined }
  | { type: 'extend'; days: number }

interface Effect {
  activity: ActivityEntry['type']
  /** The action in the audit log, and the type of the event. */
  audited: EventType
  set: Partial<Pick<LicenseRow, 'status' | 'suspendedAt' | 'revokedAt' | 'expiresAt' | 'durationDays'>>
}

const RENEWED = { activity: 'LICENSE_RENEWED', audited: 'license.renewed' } as const

function requireTerm({ policyType }: LicenseRow, pointer: string): void {
  if (policyType === 'PERPETUAL') throw invalid(pointer, 'is not allowed, because a perpetual license never expires')
}

/**
 * Returns the longer term. The days are added to the expiry, or to the current time if the license and its grace period have ended. A term
 * that has not started becomes longer.
 */
function extended(row: LicenseRow, days: number, now: Date): Effect['set'] {
  if (row.expiresAt === null) {
    const durationDays = (row.durationDays ?? 0) + days
    if (durationDays > MAX_DURATION_DAYS)
      throw invalid('#/days', `must not make the term longer than ${MAX_DURATION_DAYS} days`)
    return { durationDays }
  }
  const hasEnded = (graceEndOf(row) ?? row.expiresAt) <= now
  const expiresAt = new Date((hasEnded ? now : row.expiresAt).getTime() + days * MS_PER_DAY)
  if (expiresAt.getUTCFullYear() > 9999) throw invalid('#/days', 'must not move the expiry beyond the year 9999')
  return { expiresAt }
}

/** Returns the effect of the action on the license, or null when the action is already in effect. */
function effectOf(action: Action, row: LicenseRow): Effect | null {
  const now = new Date()
  if (action.type !== 'revoke' && row.status === 'revoked') throw new ApiError('LICENSE_REVOKED')
  switch (action.type) {
    case 'suspend':
      if (row.status === 'suspended') return null
      return {
        activity: 'LICENSE_SUSPENDED',
        audited: 'license.suspended',
        set: { status: 'suspended', suspendedAt: now },
      }
    case 'reinstate':
      if (row.status === 'active') return null
      return {
        activity: 'LICENSE_REINSTATED',
        audited: 'license.reinstated',
        set: { status: 'active', suspendedAt: null },
      }
    case 'revoke':
      if (row.status === 'revoked') return null
      return { activity: 'LICENSE_REVOKED', audited: 'license.revoked', set: { status: 'revoked', revokedAt: now } }
    case 'renew':
      requireTerm(row, '#/expiresAt')
      if (row.expiresAt?.getTime() === action.expiresAt.getTime()) return null
      if (action.expiresAt <= now)
        throw invalid('#/expiresAt', 'must be in the future; change the policy to end the license')
      if (row.expiresAt !== null && action.expiresAt < row.expiresAt && action.allowEarlier !== true)
        throw invalid(
          '#/expiresAt',
          `must not be earlier than the current expiry ${row.expiresAt.toISOString()}, unless allowEarlier is true`,
        )
      return { ...RENEWED, set: { expiresAt: action.expiresAt } }
    case 'extend':
      requireTerm(row, '#/days')
      return { ...RENEWED, set: extended(row, action.days, now) }
    default:
      return action satisfies never
  }
}

export async function actOnLicense(context: WriteContext, id: string, action: Action): Promise<License> {
  const row = await lockLicenseRow(context, id)
  const effect = effectOf(action, row)
  if (effect === null) return showLicense(row)
  await updateRow(licenseRows, context, id, { ...effect.set, updatedAt: new Date() })
  const { suspendedAt: _, revokedAt: __, ...set } = effect.set
  const before = valuesBefore(row, set)
  const more = 'reason' in action && action.reason !== undefined ? { reason: action.reason } : {}
  const changes = { ...set, ...more }
  const license = showLicense(await readLicenseRow(context, id))
  const event = { type: effect.audited, resource: license, before: showLicense(row), more }
  await audit(context, { action: effect.audited, resourceType: 'license', resourceId: id, changes, before, event })
  await recordLicenseActivity(context, effect.activity, [id])
  return license
}

/** Replaces the license key with the given key or a generated key. All other fields stay unchanged (docs/api.md#m8). */
export async function replaceLicenseKey(
  context: WriteContext,
  id: string,
  given: string | undefined,
): Promise<License> {
  const row = await lockLicenseRow(context, id)
  if (row.status === 'revoked') throw new ApiError('LICENSE_REVOKED')
  if (given === row.key) return showLicense(row)
  await updateRow(licenseRows, context, id, { key: given ?? generateLicenseKey(), updatedAt: new Date() })
  const changes = { previousKey: row.key, ...(given === undefined ? {} : { key: given }) }
  const license = showLicense(await readLicenseRow(context, id))
  const event = { type: 'license.key_replaced', resource: license, before: showLicense(row) } as const
  await audit(context, { action: 'license.key_replaced', resourceType: 'license', resourceId: id, changes, event })
  await recordLicenseActivity(context, 'LICENSE_KEY_REPLACED', [id])
  return license
}
