/** The endpoint of the audit log (docs/api.md#m11). */

import { actor, listQuery, page } from '@keyward/contract'
import { auditEntry, operatorAuditEntry, operatorAuditFilter } from '@keyward/contract/management/audit'
import type { Database } from '@keyward/database'
import { type Selectable, sql } from 'kysely'
import { z } from 'zod'

import type { Db } from '../http/context.ts'
import { operatorEndpoint, vendorEndpoint } from '../http/endpoint.ts'
import { type PageQuery, selectPage } from '../http/pagination.ts'

const changesSchema = z.record(z.string(), z.unknown()).nullable()

interface OperatorQuery extends PageQuery {
  organizationId?: string | undefined
}

function show(row: Selectable<Database['auditLog']>): z.output<typeof auditEntry> {
  const { id, at, action, resourceType, resourceId } = row
  const changes = changesSchema.parse(row.changes)
  return { id, at: at.toISOString(), actor: actor.parse(row.actor), action, resourceType, resourceId, changes }
}

/** Lists what the operator did to all organizations, also to deleted ones. */
async function listOperatorEntries(db: Db, { organizationId, ...query }: OperatorQuery) {
  const list = { name: `operator-audit-log ${organizationId ?? ''}`, organizationId: '' }
  const select = db
    .selectFrom('auditLog')
    .selectAll()
    .where(sql<boolean>`actor ->> 'type' = 'OPERATOR'`)
    .$if(organizationId !== undefined, (entries) => entries.where('organizationId', '=', organizationId ?? ''))
  return selectPage(list, query, select, (row) => ({ ...show(row), organizationId: row.organizationId }))
}

const tag = { name: 'Audit log', description: 'Who changed what, and when.' }

export const auditLog = [
  vendorEndpoint(
    'audit.read',
    {
      method: 'get',
      path: '/audit-log',
      tag,
      operationId: 'listAuditLog',
      summary: 'List audit entries',
      query: listQuery({}),
      status: 200,
      response: page(auditEntry),
    },
    ({ db, organizationId, query }) => {
      const select = db.selectFrom('auditLog').selectAll().where('organizationId', '=', organizationId)
      return selectPage({ name: 'audit-log', organizationId }, query, select, show)
    },
  ),
  operatorEndpoint(
    {
      method: 'get',
      path: '/operator/audit-log',
      tag,
      operationId: 'listOperatorAuditLog',
      summary: 'List what the operator did',
      description: 'Also to organizations that are deleted.',
      query: listQuery(operatorAuditFilter),
      status: 200,
      response: page(operatorAuditEntry),
    },
    ({ db, query }) => listOperatorEntries(db, query),
  ),
]
