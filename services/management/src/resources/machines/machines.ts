/**
 * Defines the endpoints that list the machines of a license, find machines of all licenses by machine id or host name, and remove a
 * machine. Removing a machine releases its slot (docs/api.md#s3). A trigger in Postgres counts the slots.
 */

import { type FoundMachine, type machine, machines as operations } from '@keyward/contract'
import type { Database } from '@keyward/database'
import { type Selectable, sql } from 'kysely'
import type { z } from 'zod'

import { recordLicenseActivity } from '../../activity/writer.ts'
import { audit } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { columnsOf, exportList } from '../../crud/export.ts'
import { missingIds } from '../../crud/owned-rows.ts'
import { type Page, type PageQuery, selectPage, sortedPage } from '../../http/pagination.ts'
import { notFound } from '../../http/problem.ts'
import { implement } from '../../operations/implement.ts'

type Machine = z.output<typeof machine>

/**
 * The condition for a machine that holds a slot. The row of a machine whose lease has ended remains until the next claim of its license
 * (docs/api.md#l3).
 */
export const HOLDS_SLOT = sql<boolean>`(lease_ends_at is null or lease_ends_at > now())`

/** The SQL expression for the host name in lower case. The index contains the same expression. */
export const SEARCHED_HOSTNAME = sql<string>`(lower(hostname) collate "C")`

export function showFoundMachine(row: Selectable<Database['machines']>): FoundMachine {
  return { ...showMachine(row), licenseId: row.licenseId }
}

export interface MachineQuery extends PageQuery {
  machineId?: string | undefined
  hostname?: string | undefined
}

/** Lists the machines that satisfy each given filter, newest first. Without a filter, lists all machines by machine id. */
export async function findMachines(
  { db, organizationId }: ReadContext,
  { machineId, hostname, limit, cursor }: MachineQuery,
): Promise<Page<FoundMachine>> {
  const query = { limit, cursor }
  let select = db.selectFrom('machines').selectAll().where('organizationId', '=', organizationId).where(HOLDS_SLOT)
  if (machineId !== undefined) select = select.where('machineId', '=', Buffer.from(machineId))
  if (hostname !== undefined) select = select.where(SEARCHED_HOSTNAME, '=', sql<string>`lower(${hostname})`)
  if (machineId !== undefined || hostname !== undefined)
    return selectPage({ name: 'machines', organizationId }, query, select, showFoundMachine)
  return sortedPage({ name: 'machines by id', organizationId }, query, showFoundMachine, async (after, count) => {
    const rest =
      after === null
        ? select
        : select.where(sql<boolean>`(machine_id, id) > (${Buffer.from(after.key, 'hex')}, ${after.id})`)
    const rows = await rest.orderBy('machineId').orderBy('id').limit(count).execute()
    return rows.map((row) => ({ row, place: { id: row.id, key: row.machineId.toString('hex') } }))
  })
}

/** Throws NOT_FOUND unless the license belongs to the organization. The license determines the organization of its machines. */
async function requireLicense(context: ReadContext, licenseId: string): Promise<void> {
  if ((await missingIds('licenses', context, [licenseId])).size > 0) throw notFound('license')
}

export function showMachine(row: Omit<Selectable<Database['machines']>, 'licenseId'>): Machine {
  return {
    id: row.id,
    machineId: row.machineId.toString('utf8'),
    hostname: row.hostname,
    firstSeenAt: row.firstSeenAt.toISOString(),
    lastSeenAt: row.lastSeenAt.toISOString(),
    leaseEndsAt: row.leaseEndsAt?.toISOString() ?? null,
  }
}

async function listMachines(context: ReadContext, licenseId: string, query: PageQuery): Promise<Page<Machine>> {
  await requireLicense(context, licenseId)
  const { db, organizationId } = context
  const select = db
    .selectFrom('machines')
    .selectAll()
    .where('licenseId', '=', licenseId)
    .where('licenseId', 'in', (licenses) =>
      licenses.selectFrom('licenses').select('id').where('organizationId', '=', organizationId),
    )
    .where(HOLDS_SLOT)
  return selectPage({ name: `machines of ${licenseId}`, organizationId }, query, select, showMachine)
}

async function removeMachine(context: WriteContext, licenseId: string, id: string): Promise<void> {
  await requireLicense(context, licenseId)
  const row = await context.db
    .deleteFrom('machines')
    .where('licenseId', '=', licenseId)
    .where('id', '=', id)
    .where(HOLDS_SLOT)
    .where('licenseId', 'in', (licenses) =>
      licenses.selectFrom('licenses').select('id').where('organizationId', '=', context.organizationId),
    )
    .returningAll()
    .executeTakeFirst()
  if (!row) throw notFound('machine')
  const changes = { licenseId, machineId: row.machineId.toString('utf8') }
  const event = { type: 'machine.released', resource: showMachine(row), more: { licenseId, reason: 'VENDOR' } } as const
  await audit(context, { action: 'machine.removed', resourceType: 'machine', resourceId: id, changes, event })
  await recordLicenseActivity(context, 'MACHINE_RELEASED', [licenseId], row.machineId)
}

const COLUMNS = columnsOf<FoundMachine>(
  'id',
  'licenseId',
  'machineId',
  'hostname',
  'firstSeenAt',
  'lastSeenAt',
  'leaseEndsAt',
)

const tag = { name: 'Machines', description: 'The machines that hold the slots of a license.' }

export const machines = implement(tag, operations, {
  findMachines: {
    summary: 'Find machines of all licenses',
    description: 'Newest first with a filter, otherwise by machine id.',
    handle: (call) => findMachines(call, call.query),
  },
  exportMachines: {
    summary: 'Export machines of all licenses',
    description: 'Streams all items of the filter as CSV or JSON lines, in the order of the list.',
    handle: (call) =>
      exportList(call, { name: 'machines', resourceType: 'machine', columns: COLUMNS }, (page) =>
        findMachines(call, { ...call.query, ...page }),
      ),
  },
  listMachines: {
    summary: 'List the machines of a license',
    handle: (call) => listMachines(call, call.params.id, call.query),
  },
  removeMachine: {
    summary: 'Remove a machine',
    description: 'Releases the slot of the machine.',
    handle: (call) => removeMachine(call, call.params.id, call.params.machineId),
  },
})
