/** Defines the endpoints of the activity feed (docs/api.md#d3), which lists checks and changes of licenses, newest first. */

import { code } from '@keyward/contract'
import { activity as operations, type activityEntry, activityType } from '@keyward/contract/management/activity'
import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'
import type { z } from 'zod'

import { listedActor } from '../audit/actors.ts'
import type { ReadContext } from '../context.ts'
import { columnsOf, exportList } from '../crud/export.ts'
import { missingIds } from '../crud/owned-rows.ts'
import { firstIdAt, type Page, type PageQuery, selectPage } from '../http/pagination.ts'
import { notFound } from '../http/problem.ts'
import { implement } from '../operations/implement.ts'

type ActivityEntry = z.output<typeof activityEntry>

/** Returns the time in an id of UUID version 7, which is the time at which the entry was written. The list is sorted by this time. */
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
    ...(row.actor !== null && { actor: listedActor(row.actor) }),
  }
}

/** The largest difference between the column `at` and the time in the id. A filter reads the partitions up to this far outside its period. */
const DAY_MS = 86_400_000

interface ActivityQuery extends PageQuery {
  type?: string | undefined
  code?: string | undefined
  machineId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

/** Lists the activity of one license, or of all licenses when `licenseId` is null. */
async function listActivity(
  context: ReadContext,
  licenseId: string | null,
  { type, code: checkCode, machineId, from, to, limit, cursor }: ActivityQuery,
): Promise<Page<ActivityEntry>> {
  const { db, organizationId } = context
  if (licenseId !== null && (await missingIds('licenses', context, [licenseId])).size > 0) throw notFound('license')
  let select = db
    .selectFrom('activity')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .$if(licenseId !== null, (entries) => entries.where('licenseId', '=', licenseId ?? ''))
  if (type !== undefined) select = select.where('type', '=', type)
  if (checkCode !== undefined) select = select.where('code', '=', checkCode)
  if (machineId !== undefined) select = select.where('machineId', '=', Buffer.from(machineId))
  // The condition on the id selects the entries, because responses show the time in the id as `at`. The condition on the column `at` only
  // limits the partitions that are read.
  if (from !== undefined)
    select = select.where('id', '>=', firstIdAt(from.getTime())).where('at', '>=', new Date(from.getTime() - DAY_MS))
  if (to !== undefined)
    select = select.where('id', '<', firstIdAt(to.getTime())).where('at', '<=', new Date(to.getTime() + DAY_MS))
  return selectPage({ name: `activity ${licenseId ?? ''}`, organizationId }, { limit, cursor }, select, show)
}

const COLUMNS = columnsOf<ActivityEntry>('id', 'firstAt', 'lastAt', 'type', 'code', 'licenseId', 'machineId', 'count')

const tag = { name: 'Activity', description: 'Checks and changes of licenses.' }

export const activity = implement(tag, operations, {
  listLicenseActivity: {
    summary: 'List the activity of a license',
    description: 'Checks are combined by code, machine and minute. Checks that an exclusion decides are not recorded.',
    handle: (call) => listActivity(call, call.params.id, call.query),
  },
  listActivity: {
    summary: 'List the activity of all licenses',
    handle: (call) => listActivity(call, null, call.query),
  },
  exportActivity: {
    summary: 'Export the activity of all licenses',
    description: 'Streams all items of the filter as CSV or JSON lines, in the order of the list.',
    handle: (call) =>
      exportList(call, { name: 'activity', resourceType: 'activity', columns: COLUMNS }, (page) =>
        listActivity(call, null, { ...call.query, ...page }),
      ),
  },
})
