/** The running validators and their positions in the change log. */

import { z } from 'zod'

import { EXAMPLE_ID, listQuery, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

const validatorStatus = z
  .object({
    id: z.uuid().meta({ description: 'The id of the validator process.', example: EXAMPLE_ID }),
    name: z.string().meta({ description: 'The name of the validator.', example: 'validator-1' }),
    version: z.string().nullable().meta({
      description: 'The version of the program; null for a version before 1.0.0.',
      example: '1.0.0',
    }),
    ready: z.boolean().meta({ description: 'Whether the validator reports readiness.', example: true }),
    startedAt: timestamp('The time of the start.'),
    seenAt: timestamp('The time of the last heartbeat.'),
    applied: z.string().nullable().meta({
      description: 'The last applied snapshot of the change log, in the text format of Postgres; null during the load.',
      example: '7712:7715:7713',
    }),
    behindBy: z.int().nullable().meta({
      description: 'The number of transactions with changes that are not yet applied; null during the load.',
      example: 0,
    }),
  })
  .meta({ id: 'Validator', description: 'A validator process.' })

export const validatorList = page(validatorStatus)

export const installation = z
  .object({
    database: z
      .object({
        version: z.string().meta({ description: 'The version of Postgres.', example: '18.4' }),
        bytes: z.int().meta({ description: 'The size of the database in bytes.', example: 81_264_640 }),
      })
      .meta({ description: 'The database of the installation.' }),
    webhooks: z
      .object({
        due: z.int().meta({
          description: 'The number of deliveries that are due and that no process has begun, counted up to 100,000.',
          example: 0,
        }),
        disabledEndpoints: z.int().meta({ description: 'The number of disabled endpoints.', example: 1 }),
      })
      .meta({ description: 'The deliveries of all organizations.' }),
  })
  .meta({ id: 'Installation', description: 'The state of the parts that all organizations share.' })

export const validators = operations({
  readInstallation: { route: 'GET /installation', needs: 'operator', returns: installation },
  listValidators: { route: 'GET /validators', needs: 'operator', query: listQuery({}), returns: validatorList },
})
