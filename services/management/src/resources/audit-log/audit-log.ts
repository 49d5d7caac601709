/** Defines the endpoints of the audit log of an organization and of the operator's audit log (docs/api.md#m11). */

import { type auditEntry, auditLog as operations } from '@keyward/contract/management/audit'
import type { Database } from '@keyward/database'
import { type Selectable, sql } from 'kysely'
import { z } from 'zod'

import { listedActor } from '../../audit/actors.ts'
import type { Db, ReadContext } from '../../context.ts'
import { type Columns, columnsOf, exportList } from '../../crud/export.ts'
import { firstIdAt, type PageQuery, selectPage } from '../../http/pagination.ts'
import { implement } from '../../operations/implement.ts'

const changesSchema = z.record(z.string(), z.unknown()).nullable()

/**
 * The maximum difference between the time in an entry's id and `at`. They differ because `at` is the start of the transaction on the clock
 * of Postgres.
 */
const ID_SKEW_MS = 10 * 60_000

export interface AuditQuery extends PageQuery {
  action?: string | undefined
  resourceType?: string | undefined
  resourceId?: string | undefined
  actorId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
}

interface OperatorQuery extends PageQuery {
  organizationId?: string | undefined
}

type AuditEntry = z.output<typeof auditEntry>

function show(row: Selectable<Database['auditLog']>): AuditEntry {
  const { id, at, action, resourceType, resourceId } = row
  const changes = changesSchema.parse(row.changes)
  const before = changesSchema.parse(row.before)
  return { id, at: at.toISOString(), actor: listedActor(row.actor), action, resourceType, resourceId, changes, before }
}

/** Lists the operator's actions on all organizations, including deleted ones. */
async function listOperatorEntries(db: Db, { organizationId, ...query }: OperatorQuery) {
  const list = { name: `operator-audit-log ${organizationId ?? ''}`, organizationId: '' }
  const select = db
    .selectFrom('auditLog')
    .selectAll()
    .where(sql<boolean>`actor ->> 'type' = 'OPERATOR'`)
    .$if(organizationId !== undefined, (entries) => entries.where('organizationId', '=', organizationId ?? ''))
  return selectPage(list, query, select, (row) => ({ ...show(row), organizationId: row.organizationId }))
}

export async function listEntries({ db, organizationId }: ReadContext, query: AuditQuery) {
  const { action, resourceType, resourceId, actorId, from, to, limit, cursor } = query
  let select = db.selectFrom('auditLog').selectAll().where('organizationId', '=', organizationId)
  if (action !== undefined) select = select.where('action', '=', action)
  if (resourceType !== undefined) select = select.where('resourceType', '=', resourceType)
  if (resourceId !== undefined) select = select.where('resourceId', '=', resourceId)
  if (actorId !== undefined) select = select.where(sql<boolean>`actor ->> 'id' = ${actorId}`)
  // The conditions on `at` select the entries. The conditions on the id only limit the part of the index that is read.
  if (from !== undefined)
    select = select.where('at', '>=', from).where('id', '>=', firstIdAt(from.getTime() - ID_SKEW_MS))
  if (to !== undefined) select = select.where('at', '<', to).where('id', '<', firstIdAt(to.getTime() + ID_SKEW_MS))
  return selectPage({ name: 'audit-log', organizationId }, { limit, cursor }, select, show)
}

const COLUMNS: Columns<AuditEntry> = {
  ...columnsOf<AuditEntry>('id', 'at'),
  actorType: ({ actor: by }) => by.type,
  actorId: ({ actor: by }) => by.id,
  actorName: ({ actor: by }) => by.name,
  ...columnsOf<AuditEntry>('action', 'resourceType', 'resourceId', 'before', 'changes'),
}

const tag = { name: 'Audit log', description: 'Every change, with its actor and its time.' }

export const auditLog = implement(tag, operations, {
  listAuditLog: { summary: 'List audit entries', handle: (call) => listEntries(call, call.query) },
  exportAuditLog: {
    summary: 'Export audit entries',
    description: 'Streams all items of the filter as CSV or JSON lines, in the order of the list.',
    handle: (call) =>
      exportList(call, { name: 'audit-log', resourceType: 'audit_entry', columns: COLUMNS }, (page) =>
        listEntries(call, { ...call.query, ...page }),
      ),
  },
  listOperatorAuditLog: {
    summary: 'List the actions of the operator',
    description: 'Includes actions on deleted organizations.',
    handle: ({ db, query }) => listOperatorEntries(db, query),
  },
})
