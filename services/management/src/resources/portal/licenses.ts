/** Shows the licenses of a customer in the portal, and frees slots for the customer (docs/api.md#u4, docs/api.md#u5). */

import type { PortalAction, PortalLicense } from '@keyward/contract/management/portal'
import { releaseSlot } from '@keyward/database/kysely'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { PortalAccess, ReadContext, WriteContext } from '../../context.ts'
import { type Page, type PageQuery, selectPage } from '../../http/pagination.ts'
import { ApiError, notFound } from '../../http/problem.ts'
import { effectiveStatus, graceEndOf, selectLicenses } from '../licenses/license-rows.ts'
import { readListedMachines, RELEASES, releasesLeftOf } from '../machines/for-app.ts'
import { HOLDS_SLOT, showMachine } from '../machines/machines.ts'

/** The maximum number of changes of one session, so that a customer cannot use up the bytes of the vendor. */
const MAX_ACTS = 200

export interface CustomerContext extends ReadContext {
  portal: PortalAccess
}
type ChangeContext = CustomerContext & WriteContext

function selectOwn(context: CustomerContext) {
  return selectLicenses(context)
    .innerJoin('products', 'products.id', 'licenses.productId')
    .select(['products.name as productName', RELEASES.as('releases')])
    .where('licenses.customerId', '=', context.portal.customerId)
}

/** Returns a license of the customer. Throws NOT_FOUND. */
export async function readOwnLicense(context: CustomerContext, id: string) {
  const row = await selectOwn(context).where('licenses.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('license')
  return row
}

type OwnLicense = Awaited<ReturnType<typeof readOwnLicense>>

/** Returns whether a limit of releases or leases bound how often a slot can be passed on (docs/api.md#u1). */
function isEnabled({ maxReleases, leaseSeconds }: OwnLicense): boolean {
  return maxReleases !== null || leaseSeconds !== null
}

function showOwn(row: OwnLicense): Omit<PortalLicense, 'machines'> {
  const releasesLeft = releasesLeftOf(row)
  return {
    id: row.id,
    productName: row.productName,
    status: effectiveStatus(row, Date.now()),
    type: row.policyType,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    durationDays: row.durationDays,
    graceEndsAt: graceEndOf(row)?.toISOString() ?? null,
    used: row.used,
    max: row.maxMachines,
    releasesLeft,
    canRelease: isEnabled(row) && releasesLeft !== 0,
  }
}

export async function listOwnLicenses(context: CustomerContext, query: PageQuery): Promise<Page<PortalLicense>> {
  const { organizationId, portal } = context
  const list = { name: `licenses of ${portal.customerId}`, organizationId }
  const { data, nextCursor } = await selectPage(list, query, selectOwn(context), showOwn, 'licenses.id')
  const machines = await readListedMachines(
    context,
    data.map(({ id }) => id),
  )
  const listed = (id: string) =>
    (machines.get(id) ?? []).map(({ id: ref, hostname, lastSeenAt, fileEndsAt }) => ({
      ref,
      hostname,
      lastSeenAt: lastSeenAt.toISOString(),
      fileEndsAt: fileEndsAt !== null && fileEndsAt.getTime() > Date.now() ? fileEndsAt.toISOString() : null,
    }))
  return { data: data.map((one) => Object.assign(one, { machines: listed(one.id) })), nextCursor }
}

/** Counts a change of the session. Throws FORBIDDEN unless the session may take the action, and RATE_LIMITED. */
export async function countAct({ db, organizationId, portal }: CustomerContext, action: PortalAction): Promise<void> {
  if (portal.isPreview) throw new ApiError('FORBIDDEN', 'This view of the portal is a preview, which changes nothing.')
  if (!portal.actions.includes(action))
    throw new ApiError('FORBIDDEN', `The link of this session does not allow the action "${action}".`)
  const { numUpdatedRows } = await db
    .updateTable('portalSessions')
    .set({ acts: sql<number>`acts + 1` })
    .where('organizationId', '=', organizationId)
    .where('id', '=', portal.sessionId)
    .where('acts', '<', MAX_ACTS)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows > 0n) return
  const detail = `A session of the portal makes at most ${MAX_ACTS} changes. Open a new link.`
  throw new ApiError('RATE_LIMITED', detail, { headers: { 'retry-after': '3600' } })
}

/**
 * Releases the slot of a machine of the list. Returns false when the machine keeps it, because the license allows no further release or its
 * file is still valid. Throws NOT_FOUND, NOT_ENABLED and UNAVAILABLE.
 */
export async function releaseOwn(context: ChangeContext, licenseId: string, ref: string): Promise<boolean> {
  const { db, organizationId, actor } = context
  const license = await readOwnLicense(context, licenseId)
  if (!isEnabled(license)) throw new ApiError('NOT_ENABLED', 'The license does not let customers free its slots.')
  const row = await db
    .selectFrom('machines')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('licenseId', '=', licenseId)
    .where('id', '=', ref)
    .where(HOLDS_SLOT)
    .executeTakeFirst()
  if (!row) throw notFound('machine')
  const outcome = await releaseSlot(db, { licenseId, machineId: row.machineId, actor })
  if (outcome === 'busy') throw new ApiError('UNAVAILABLE', undefined, { headers: { 'retry-after': '1' } })
  if (outcome !== 'released') return false
  const machine = showMachine(row)
  const event = { type: 'machine.released', resource: machine, more: { licenseId, reason: 'CUSTOMER' } } as const
  const changes = { licenseId, machineId: machine.machineId }
  await audit(context, { action: 'machine.released', resourceType: 'machine', resourceId: ref, changes, event })
  return true
}
