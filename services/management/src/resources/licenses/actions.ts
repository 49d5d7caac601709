/**
 * The transitions of a license: active to suspended and back, any to revoked, which is final, and renewal, which moves the expiry.
 * An action that already holds changes nothing; any action but revoking refuses a revoked license.
 */
import type { License } from '@keyward/contract'
import type { ActivityEntry } from '@keyward/database/kysely'

import { audit, type Change, recordChange } from '../../audit/writer.ts'
import { invalid, Refusal } from '../../http/problem.ts'
import { type LicenseRow, showLicense } from './show.ts'
import { lockLicenseRow, readLicenseRow } from './store.ts'

export type Action =
  | { type: 'suspend' }
  | { type: 'reinstate' }
  | { type: 'revoke' }
  | { type: 'renew'; expiresAt: Date }

interface Effect {
  event: ActivityEntry['type']
  audited: string
  set: Partial<Pick<LicenseRow, 'status' | 'suspendedAt' | 'revokedAt' | 'expiresAt'>>
}

/** What the action does to the license; null: it already holds. */
function effectOf(action: Action, row: LicenseRow): Effect | null {
  const now = new Date()
  if (action.type !== 'revoke' && row.status === 'revoked') throw new Refusal('LICENSE_REVOKED')
  switch (action.type) {
    case 'suspend':
      if (row.status === 'suspended') return null
      return {
        event: 'LICENSE_SUSPENDED',
        audited: 'license.suspended',
        set: { status: 'suspended', suspendedAt: now },
      }
    case 'reinstate':
      if (row.status === 'active') return null
      return {
        event: 'LICENSE_REINSTATED',
        audited: 'license.reinstated',
        set: { status: 'active', suspendedAt: null },
      }
    case 'revoke':
      if (row.status === 'revoked') return null
      return { event: 'LICENSE_REVOKED', audited: 'license.revoked', set: { status: 'revoked', revokedAt: now } }
    case 'renew':
      if (row.policyType === 'PERPETUAL') throw invalid('#/expiresAt', 'a perpetual license never expires')
      if (row.expiresAt?.getTime() === action.expiresAt.getTime()) return null
      return { event: 'LICENSE_RENEWED', audited: 'license.renewed', set: { expiresAt: action.expiresAt } }
    default:
      return action satisfies never
  }
}

export async function actOnLicense(change: Change, id: string, action: Action): Promise<License> {
  const { db, organizationId } = change
  const row = await lockLicenseRow(db, organizationId, id)
  const effect = effectOf(action, row)
  if (effect === null) return showLicense(row)
  await db
    .updateTable('licenses')
    .set({ ...effect.set, updatedAt: new Date() })
    .where('id', '=', id)
    .execute()
  const changes = action.type === 'renew' ? { expiresAt: action.expiresAt } : {}
  await audit(change, { action: effect.audited, resourceType: 'license', resourceId: id, changes })
  await recordChange(change, effect.event, [id])
  return showLicense(await readLicenseRow(db, organizationId, id))
}
