/**
 * Lists the machines of a license for an app that has the license key (docs/api.md#u1). The list contains no machine id. As for a release,
 * the status of the license and the access rules have no effect.
 */

import {
  CODE_MESSAGES,
  type LicenseMachines,
  MAX_LISTED_HOSTNAME,
  MAX_LISTED_MACHINES,
  slots as operations,
} from '@keyward/contract'
import { licenseKey as storedLicenseKey } from '@keyward/contract/management/licenses'
import { sql } from 'kysely'

import type { ReadContext } from '../../context.ts'
import { ApiError } from '../../http/problem.ts'
import { implement } from '../../operations/implement.ts'
import { selectLicenses } from '../licenses/license-rows.ts'
import { HOLDS_SLOT } from './machines.ts'

interface AppRequest {
  licenseKey: string
  fingerprint: string | null
  /** The product to which the API key is bound, or null. */
  productId: string | null
}

/** The number of slots that apps have released in the last 30 days (docs/api.md#l2). */
export const RELEASES = sql<number>`(
  select count(*)::integer from slot_releases r where r.license_id = licenses.id and r.at > now() - interval '30 days')`

/** Throws NOT_FOUND with status 409, as for a license file, and NOT_ENABLED. */
async function listForApp(
  context: ReadContext,
  { licenseKey, fingerprint, productId }: AppRequest,
): Promise<LicenseMachines> {
  const license = await readLicense(context, licenseKey)
  if (!license || (productId !== null && license.productId !== productId))
    throw new ApiError('NOT_FOUND', CODE_MESSAGES.NOT_FOUND, { status: 409 })
  const { id, used, maxMachines, maxReleases, leaseSeconds } = license
  if (maxReleases === null && leaseSeconds === null)
    throw new ApiError('NOT_ENABLED', 'The license does not let apps list its machines and release them by ref.')
  const rows = (await readListedMachines(context, [id])).get(id) ?? []
  return {
    used,
    max: maxMachines,
    releasesLeft: releasesLeftOf(license),
    machines: rows.map(({ id: ref, machineId, hostname, lastSeenAt }) => ({
      ref,
      hostname,
      lastSeenAt: lastSeenAt.toISOString(),
      current: fingerprint !== null && machineId.equals(Buffer.from(fingerprint)),
    })),
  }
}

export function releasesLeftOf(license: { maxReleases: number | null; releases: number }): number | null {
  return license.maxReleases === null ? null : Math.max(0, license.maxReleases - license.releases)
}

interface ListedMachine {
  id: string
  licenseId: string
  machineId: Buffer
  hostname: string | null
  lastSeenAt: Date
  fileEndsAt: Date | null
}

/** Returns up to MAX_LISTED_MACHINES machines of each license, the one not seen for the longest time first. */
export async function readListedMachines(
  { db, organizationId }: ReadContext,
  licenseIds: readonly string[],
): Promise<ReadonlyMap<string, readonly ListedMachine[]>> {
  const { rows } = await sql<ListedMachine>`
    select m.* from unnest(${licenseIds}::uuid[]) as l (id) cross join lateral (
      select id, license_id, machine_id, left(hostname, ${MAX_LISTED_HOSTNAME}) as hostname, last_seen_at, file_ends_at from machines
      where organization_id = ${organizationId} and license_id = l.id and ${HOLDS_SLOT} order by id limit ${MAX_LISTED_MACHINES}) m`.execute(
    db,
  )
  const sorted = rows.toSorted((a, b) => a.lastSeenAt.getTime() - b.lastSeenAt.getTime())
  return Map.groupBy(sorted, ({ licenseId }) => licenseId)
}

async function readLicense(context: ReadContext, key: string) {
  // Postgres rejects some texts that no license has as its key.
  if (!storedLicenseKey.safeParse(key).success) return undefined
  return selectLicenses(context).select(RELEASES.as('releases')).where('licenses.key', '=', key).executeTakeFirst()
}

const tag = { name: 'Slots', description: 'The machines that hold the slots of a license, for its app.' }

export const slots = implement(tag, operations, {
  requestMachines: {
    summary: 'List the machines of a license for an app',
    description:
      'Called with an API key. Requires a license with `policy.maxReleases` or `policy.leaseSeconds`. An app releases a machine of the list ' +
      'with `POST /api/v1/deactivate` and its `ref`. Works for licenses of every status. Access rules do not apply.',
    errors: [{ code: 'NOT_FOUND', status: 409 }, 'NOT_ENABLED'],
    handle: (call) => listForApp(call, { ...call.body, productId: call.credential.productId }),
  },
})
