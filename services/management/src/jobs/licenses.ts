/** Reads licenses of all organizations in the representation of the API, for events that no request causes. */

import type { License } from '@keyward/contract'

import type { Db } from '../context.ts'
import { selectAllLicenses, showLicense } from '../resources/licenses/license-rows.ts'

/** Returns the licenses by id, with their organizations. Deleted licenses are absent. */
export async function licensesById(
  db: Db,
  ids: readonly string[],
): Promise<Map<string, { organizationId: string; license: License }>> {
  if (ids.length === 0) return new Map()
  const rows = await selectAllLicenses(db).select('licenses.organizationId').where('licenses.id', 'in', ids).execute()
  return new Map(rows.map((row) => [row.id, { organizationId: row.organizationId, license: showLicense(row) }]))
}
