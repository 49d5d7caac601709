/** The validators that run, and how far each has applied the change log. */

import { z } from 'zod'

import { EXAMPLE_ID, page, timestamp } from './common.ts'

const validatorStatus = z
  .object({
    id: z.uuid().meta({ description: 'The id of the process.', example: EXAMPLE_ID }),
    name: z.string().meta({ description: 'Its name.', example: 'validator-1' }),
    ready: z.boolean().meta({ description: 'Whether it reports that it is ready.', example: true }),
    startedAt: timestamp('When it started.'),
    seenAt: timestamp('When it last wrote.'),
    applied: z.string().nullable().meta({
      description: 'The snapshot of the change log that it has applied, as Postgres writes one; null: still loading.',
      example: '7712:7715:7713',
    }),
    behindBy: z.int().nullable().meta({
      description: 'How many transactions with changes it has not applied yet; null: still loading.',
      example: 0,
    }),
  })
  .meta({ id: 'Validator', description: 'A process that responds to checks.' })

export const validatorList = page(validatorStatus)
