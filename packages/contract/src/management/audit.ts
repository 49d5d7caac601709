/** The entries of the audit log (docs/api.md#m11). */

import { z } from 'zod'

import { text } from '../text.ts'
import { actor, EXAMPLE_ID, exportedRows, exportQuery, id, listQuery, moment, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

export const auditEntry = z
  .object({
    id: z.uuid().meta({ description: 'The id of the entry.', example: EXAMPLE_ID }),
    at: timestamp('The time of the change.'),
    actor,
    action: z.string().meta({ description: 'The action.', example: 'license.suspended' }),
    resourceType: z.string().meta({ description: 'The type of the changed resource.', example: 'license' }),
    resourceId: z.uuid().nullable().meta({
      description: 'The id of the changed resource; null for a change of many resources.',
      example: EXAMPLE_ID,
    }),
    changes: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({
        description: 'The new values, or the values of the deleted resource. Secrets are never included.',
        example: { name: 'Acme Studio' },
      }),
    before: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({
        description: 'The replaced values; null if the change replaced none.',
        example: { name: 'Studio' },
      }),
  })
  .meta({ id: 'AuditEntry', description: 'A change by a caller.' })

export const operatorAuditEntry = auditEntry
  .extend({
    organizationId: z.uuid().nullable().meta({
      description: 'The id of the organization, which may be deleted.',
      example: EXAMPLE_ID,
    }),
  })
  .meta({ id: 'OperatorAuditEntry', description: 'A change by the operator.' })

const auditFilter = {
  action: text(100)
    .optional()
    .meta({ description: 'Returns only entries with this action.', example: 'license.suspended' }),
  resourceType: text(100)
    .optional()
    .meta({ description: 'Returns only entries of resources of this type.', example: 'license' }),
  resourceId: id('Returns only entries of this resource.').optional(),
  actorId: id('Returns only changes by this credential.').optional(),
  from: moment('Returns only entries from this time on.').optional(),
  to: moment('Returns only entries before this time.').optional(),
}

const operatorAuditFilter = { organizationId: id('Returns only entries of this organization.').optional() }

export const auditLog = operations({
  listAuditLog: {
    route: 'GET /audit-log',
    needs: 'audit.read',
    query: listQuery(auditFilter),
    returns: page(auditEntry),
  },
  exportAuditLog: {
    route: 'GET /audit-log/export',
    needs: 'audit.read',
    query: exportQuery(auditFilter),
    returns: exportedRows,
    file: 'text/csv',
  },
  listOperatorAuditLog: {
    route: 'GET /operator/audit-log',
    needs: 'operator',
    query: listQuery(operatorAuditFilter),
    returns: page(operatorAuditEntry),
  },
})
