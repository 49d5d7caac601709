/** Writes changes of licenses to their activity feeds, in the transaction of the change. */

import { type ActivityEntry, recordActivity } from '@keyward/database/kysely'

import type { WriteContext } from '../context.ts'

/** Records one entry for each license, with the actor of the context. */
export async function recordLicenseActivity(
  { db, organizationId, actor }: WriteContext,
  type: ActivityEntry['type'],
  licenseIds: readonly string[],
  machineId?: Uint8Array,
): Promise<void> {
  await recordActivity(db, { type, organizationId, licenseIds, actor, ...(machineId && { machineId }) })
}
