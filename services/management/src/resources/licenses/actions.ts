/**
 * Performs the actions on a license (docs/api.md#m8, docs/api.md#v10): suspend, reinstate, renew, extend, revoke and replace the key.
 * Renewal and extension change the expiry. Revocation is final. An action that is already in effect changes nothing. A revoked license accepts only another
 * revocation.
 */

import { type License, MAX_DURATION_DAYS } from '@keyward/contract'
import type { EventType } from '@keyward/contract/management/events'
import type { JobReason, LicenseAction } from '@keyward/contract/management/license-jobs'
import type { ActivityEntry } from '@keyward/database/kysely'

import { recordLicenseActivity } from '../../activity/writer.ts'
import { audit, valuesBefore } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { updateRow } from '../../crud/owned-rows.ts'
import { ApiError, invalid } from '../../http/problem.ts'
import { generateLicenseKey } from './key.ts'
import { graceEndOf, type LicenseRow, lockLicenseRow, MS_PER_DAY, readLicenseRow, showLicense } from './license-rows.ts'
import { licenseRows } from './store.ts'

export type Action = Exclude<LicenseAction, { type: 'delete' }>

export interface Effect {
  activity: ActivityEntry['type']
  /** The action in the audit log, and the type of the event. */
  audited: EventType
  set: Partial<Pick<LicenseRow, 'status' | 'suspendedAt' | 'revokedAt' | 'expiresAt' | 'durationDays'>>
}

/** The reason for which an action leaves a license as it is. Without an error, the action is already in effect. */
export interface Refusal {
  reason: JobReason
  error?: () => ApiError
}

const IN_EFFECT: Refusal = { reason: 'IN_EFFECT' }
const refuse = (reason: JobReason, pointer: string, detail: string): Refusal => ({
  reason,
  error: () => invalid(pointer, detail),
})

export const RENEWED = { activity: 'LICENSE_RENEWED', audited: 'license.renewed' } as const

/** The fields of a license on which the effect of an action depends. */
type Acted = Pick<LicenseRow, 'status' | 'policyType' | 'expiresAt' | 'durationDays' | 'graceDays'>

const refuseTerm = (pointer: string): Refusal =>
  refuse('PERPETUAL', pointer, 'is not allowed, because a perpetual license never expires')

/**
 * Returns the longer term. The days are added to the expiry, or to the current time if the license and its grace period have ended. A term
 * that has not started becomes longer.
 */
function extended(row: Acted, days: number, now: Date): Effect | Refusal {
  if (row.expiresAt === null) {
    const durationDays = (row.durationDays ?? 0) + days
    return durationDays > MAX_DURATION_DAYS
      ? refuse('TERM_TOO_LONG', '#/days', `must not make the term longer than ${MAX_DURATION_DAYS} days`)
      : { ...RENEWED, set: { durationDays } }
  }
  const hasEnded = (graceEndOf(row) ?? row.expiresAt) <= now
  const expiresAt = new Date((hasEnded ? now : row.expiresAt).getTime() + days * MS_PER_DAY)
  return expiresAt.getUTCFullYear() > 9999
    ? refuse('TERM_TOO_LONG', '#/days', 'must not move the expiry beyond the year 9999')
    : { ...RENEWED, set: { expiresAt } }
}

/** Returns the effect of the action on the license, or the reason for which it has none. */
export function effectOf(action: Action, row: Acted, now: Date): Effect | Refusal {
  if (action.type !== 'revoke' && row.status === 'revoked')
    return { reason: 'REVOKED', error: () => new ApiError('LICENSE_REVOKED') }
  switch (action.type) {
    case 'suspend':
      if (row.status === 'suspended') return IN_EFFECT
      return {
        activity: 'LICENSE_SUSPENDED',
        audited: 'license.suspended',
        set: { status: 'suspended', suspendedAt: now },
      }
    case 'reinstate':
      if (row.status === 'active') return IN_EFFECT
      return {
        activity: 'LICENSE_REINSTATED',
        audited: 'license.reinstated',
        set: { status: 'active', suspendedAt: null },
      }
    case 'revoke':
      if (row.status === 'revoked') return IN_EFFECT
      return { activity: 'LICENSE_REVOKED', audited: 'license.revoked', set: { status: 'revoked', revokedAt: now } }
    case 'renew':
      if (row.policyType === 'PERPETUAL') return refuseTerm('#/expiresAt')
      if (row.expiresAt?.getTime() === action.expiresAt.getTime()) return IN_EFFECT
      if (action.expiresAt <= now)
        return refuse('EXPIRY_PAST', '#/expiresAt', 'must be in the future; change the policy to end the license')
      if (row.expiresAt !== null && action.expiresAt < row.expiresAt && action.allowEarlier !== true)
        return refuse(
          'EXPIRY_EARLIER',
          '#/expiresAt',
          `must not be earlier than the current expiry ${row.expiresAt.toISOString()}, unless allowEarlier is true`,
        )
      return { ...RENEWED, set: { expiresAt: action.expiresAt } }
    case 'extend':
      return row.policyType === 'PERPETUAL' ? refuseTerm('#/days') : extended(row, action.days, now)
    default:
      return action satisfies never
  }
}

/** Returns the members that the event of an action has in addition. */
export function detailsOf(action: Action): { reason?: string } {
  return 'reason' in action && action.reason !== undefined ? { reason: action.reason } : {}
}

export async function actOnLicense(context: WriteContext, id: string, action: Action): Promise<License> {
  const row = await lockLicenseRow(context, id)
  const effect = effectOf(action, row, new Date())
  if ('reason' in effect) {
    if (effect.error) throw effect.error()
    return showLicense(row)
  }
  await updateRow(licenseRows, context, id, { ...effect.set, updatedAt: new Date() })
  const { suspendedAt: _, revokedAt: __, ...set } = effect.set
  const before = valuesBefore(row, set)
  const more = detailsOf(action)
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
