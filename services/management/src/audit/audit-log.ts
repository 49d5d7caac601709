/** The endpoint of the audit log (docs/api.md#m11). */

import { actor, auditEntry, listQuery, page } from '@keyward/contract'
import type { Database } from '@keyward/database'
import type { Selectable } from 'kysely'
import { z } from 'zod'

import { vendorEndpoint } from '../http/endpoint.ts'
import { selectPage } from '../http/pagination.ts'

const changesSchema = z.record(z.string(), z.unknown()).nullable()

function show(row: Selectable<Database['auditLog']>): z.output<typeof auditEntry> {
  const { id, at, action, resourceType, resourceId } = row
  const changes = changesSchema.parse(row.changes)
  return { id, at: at.toISOString(), actor: actor.parse(row.actor), action, resourceType, resourceId, changes }
}

export const auditLog = [
  vendorEndpoint(
    'audit.read',
    {
      method: 'get',
      path: '/audit-log',
      tag: { name: 'Audit log', description: 'Who changed what, and when.' },
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
]
