/** The audit log: who changed what (docs/api.md#m11). */

import { z } from 'zod'

import { text } from '../text.ts'
import { actor, EXAMPLE_ID, id, moment, timestamp } from './common.ts'

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
    before: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({
        description: 'The values that a change replaced; null where it replaced none.',
        example: { name: 'Studio' },
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

export const auditFilter = {
  action: text(100).optional().meta({ description: 'Only this action.', example: 'license.suspended' }),
  resourceType: text(100).optional().meta({ description: 'Only resources of this type.', example: 'license' }),
  resourceId: id('Only this resource.').optional(),
  actorId: id('Only what this credential did.').optional(),
  from: moment('Only entries from this time on.').optional(),
  to: moment('Only entries before this time.').optional(),
}

export const operatorAuditFilter = { organizationId: id('Only of this organization.').optional() }
