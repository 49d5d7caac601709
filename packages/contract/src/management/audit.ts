/** The audit log: who changed what (docs/api.md#m11). */

import { z } from 'zod'

import { actor, EXAMPLE_ID, id, timestamp } from './common.ts'

export const auditEntry = z
  .object({
    id: z.uuid().meta({ description: 'The id of the entry.', example: EXAMPLE_ID }),
    at: timestamp('When it was done.'),
    actor,
    action: z.string().meta({ description: 'What was done.', example: 'license.suspended' }),
    resourceType: z.string().meta({ description: 'The type of the changed resource.', example: 'license' }),
    resourceId: z.uuid().nullable().meta({ description: 'Its id; null for many at once.', example: EXAMPLE_ID }),
    changes: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({
        description: 'The new values, or those of what was deleted; never a secret.',
        example: { name: 'Acme Studio' },
      }),
  })
  .meta({ id: 'AuditEntry', description: 'Who changed what.' })

export const operatorAuditEntry = auditEntry
  .extend({
    organizationId: z.uuid().nullable().meta({
      description: 'The organization, which may be deleted.',
      example: EXAMPLE_ID,
    }),
  })
  .meta({ id: 'OperatorAuditEntry', description: 'What the operator changed.' })

export const operatorAuditFilter = { organizationId: id('Only of this organization.').optional() }
