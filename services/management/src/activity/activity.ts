/** Endpoints of the activity feed (docs/api.md#d3): what happened to licenses, newest first. */

import { actor, code, idParams, listQuery, page } from '@keyward/contract'
import { activityEntry, activityFilter, activityType } from '@keyward/contract/management/activity'
import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { missingIds } from '../crud/rows.ts'
import type { ReadContext } from '../http/context.ts'
import { vendorEndpoint } from '../http/endpoint.ts'
import { firstIdAt, type Page, type PageQuery, selectPage } from '../http/pagination.ts'
import { notFound } from '../http/problem.ts'

type ActivityEntry = z.output<typeof activityEntry>

/** Returns the time of an id of UUID version 7: when the entry was written. So `at` agrees with the order of the list. */
function timeOf(id: string): string {
  return new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString()
}

function show(row: Selectable<Database['activity']>): ActivityEntry {
  return {
    id: row.id,
    at: timeOf(row.id),
    type: activityType.parse(row.type),
    licenseId: row.licenseId,
    ...(row.code !== null && { code: code.parse(row.code) }),
    ...(row.machineId !== null && { machineId: row.machineId.toString('utf8') }),
    count: row.count,
    firstAt: row.firstAt.toISOString(),
    lastAt: row.lastAt.toISOString(),
    ...(row.actor !== null && { actor: actor.parse(row.actor) }),
  }
}

/** The minute of an entry may be this far from the time at which it was written: entries of files begin with their day. */
const DAY_MS = 86_400_000

export interface ActivityQuery extends PageQuery {
  type?: string | undefined
  code?: string | undefined
  machineId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** Lists the activity of one license, or of all licenses for null. */
async function listActivity(
  context: ReadContext,
  licenseId: string | null,
  { type, code: ofCode, machineId, from, to, ...query }: ActivityQuery,
): Promise<Page<ActivityEntry>> {
  const { db, organizationId } = context
  if (licenseId !== null && (await missingIds('licenses', context, [licenseId])).size > 0) throw notFound('license')
  let select = db
    .selectFrom('activity')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .$if(licenseId !== null, (entries) => entries.where('licenseId', '=', licenseId ?? ''))
  if (type !== undefined) select = select.where('type', '=', type)
  if (ofCode !== undefined) select = select.where('code', '=', ofCode)
  if (machineId !== undefined) select = select.where('machineId', '=', Buffer.from(machineId))
  // `at` is the time of the id, which also bounds the part of the index that is read. Partitions have the minute of the check.
  if (from !== undefined)
    select = select.where('id', '>=', firstIdAt(from.getTime())).where('at', '>=', new Date(from.getTime() - DAY_MS))
  if (to !== undefined)
    select = select.where('id', '<', firstIdAt(to.getTime())).where('at', '<=', new Date(to.getTime() + DAY_MS))
  return selectPage({ name: `activity ${licenseId ?? ''}`, organizationId }, query, select, show)
}

const tag = { name: 'Activity', description: 'What happened to licenses.' }
const listed = {
  method: 'get',
  tag,
  query: listQuery(activityFilter),
  status: 200,
  response: page(activityEntry),
} as const

export const activity = [
  vendorEndpoint(
    'licenses.read',
    {
      ...listed,
      path: '/licenses/{id}/activity',
      operationId: 'listLicenseActivity',
      summary: 'List the activity of a license',
      description:
        'Checks are combined by code, machine and minute. Checks that an exclusion decides are not recorded.',
      params: idParams,
    },
    (call) => listActivity(call, call.params.id, call.query),
  ),
  vendorEndpoint(
    'licenses.read',
    { ...listed, path: '/activity', operationId: 'listActivity', summary: 'List the activity of all licenses' },
    (call) => listActivity(call, null, call.query),
  ),
]
