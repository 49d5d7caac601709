/** What is recorded: activity, alerts, analytics, the audit log; and the validators that answer checks. Never an address, never a country. */
import { z } from 'zod'

import { code } from '../codes.ts'
import { codes } from '../vocabulary.ts'
import { actor, exampleId, id, moment, page, timestamp } from './common.ts'

export const activityType = z
  .enum([
    'CHECK',
    'MACHINE_ACTIVATED',
    'MACHINE_RELEASED',
    'LICENSE_CREATED',
    'LICENSE_CHANGED',
    'LICENSE_SUSPENDED',
    'LICENSE_REINSTATED',
    'LICENSE_RENEWED',
    'LICENSE_REVOKED',
  ])
  .meta({ description: '`CHECK`, or the change that was made.', example: 'CHECK' })

export const activityEntry = z
  .object({
    id: z.uuid().meta({ description: 'The id of the entry.', example: exampleId }),
    at: timestamp(
      'When it was written down, which orders the list; for checks within a second or so of the first of them.',
    ),
    type: activityType,
    licenseId: z.uuid().meta({ description: 'The license.', example: exampleId }),
    code: code.optional(),
    machineId: z.string().optional().meta({ description: 'The machine id.', example: 'A4-F1-00-12' }),
    count: z.int().meta({ description: 'How many checks are gathered in it.', example: 17 }),
    firstAt: timestamp('The first of them.'),
    lastAt: timestamp('The last of them.'),
    actor: actor.optional(),
  })
  .meta({ id: 'ActivityEntry', description: 'Something that happened to a license.' })

export const alert = z
  .object({
    id: z.uuid().meta({ description: 'The id of the alert.', example: exampleId }),
    kind: z
      .literal('OVERUSE')
      .meta({ description: 'More machines asked than the license has slots.', example: 'OVERUSE' }),
    licenseId: z.uuid().meta({ description: 'The license.', example: exampleId }),
    count: z.int().meta({ description: 'How many checks were refused.', example: 9 }),
    firstAt: timestamp('The first of them.'),
    lastAt: timestamp('The last of them.'),
    acknowledgedAt: timestamp('When somebody took note; null: open.').nullable(),
  })
  .meta({ id: 'Alert', description: 'A license is wanted on more machines than it has slots.' })

export const analyticsQuery = z.strictObject({
  from: moment('The start, included. Default: seven days before `to`.').optional(),
  to: moment('The end, excluded. Default: now.').optional(),
  interval: z
    .enum(['hour', 'day'])
    .default('day')
    .meta({ description: 'The width of a bucket (UTC).', example: 'day' }),
  productId: id('Only of this product.').optional(),
  groupBy: z
    .enum(['code', 'product'])
    .optional()
    .meta({ description: 'What to split each bucket by.', example: 'code' }),
})
export const analytics = z.object({
  from: timestamp('The start, included.'),
  to: timestamp('The end, excluded.'),
  interval: z.enum(['hour', 'day']).meta({ description: 'The width of a bucket.', example: 'day' }),
  data: z
    .array(
      z.object({
        start: timestamp('The start of the bucket.'),
        code: z.enum(codes).optional().meta({ description: 'With `groupBy=code`.', example: 'VALID' }),
        productId: z
          .uuid()
          .nullable()
          .optional()
          .meta({ description: 'With `groupBy=product`; null: no license had the key.', example: exampleId }),
        count: z.int().meta({ description: 'How many checks.', example: 1024 }),
      }),
    )
    .meta({ description: 'Every bucket, oldest first; of each code or product that occurs, when they are split.' }),
})

export const auditEntry = z
  .object({
    id: z.uuid().meta({ description: 'The id of the entry.', example: exampleId }),
    at: timestamp('When.'),
    actor,
    action: z.string().meta({ description: 'What was done.', example: 'license.suspended' }),
    resourceType: z.string().meta({ description: 'What kind of thing it was done to.', example: 'license' }),
    resourceId: z.uuid().nullable().meta({ description: 'Its id; null for many at once.', example: exampleId }),
    changes: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({
        description: 'What was given, or what it was that went; never a secret.',
        example: { name: 'Acme Studio' },
      }),
  })
  .meta({ id: 'AuditEntry', description: 'Who changed what.' })

export const validatorStatus = z
  .object({
    id: z.uuid().meta({ description: 'The id of the process.', example: exampleId }),
    name: z.string().meta({ description: 'Its name.', example: 'validator-1' }),
    ready: z.boolean().meta({ description: 'Whether it says that it is ready.', example: true }),
    startedAt: timestamp('When it started.'),
    seenAt: timestamp('When it last wrote.'),
    applied: z.string().nullable().meta({
      description: 'The snapshot of the change log that it has applied, as Postgres writes one; null: still loading.',
      example: '7712:7715:7713',
    }),
    behindBy: z.int().nullable().meta({
      description: 'How many transactions that changed something it has not applied yet; null: still loading.',
      example: 0,
    }),
  })
  .meta({ id: 'Validator', description: 'A process that answers checks.' })

export const validatorList = page(validatorStatus)
