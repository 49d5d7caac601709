/** How many validators have applied the changes of the caller's organization (docs/api.md#p2). */

import { z } from 'zod'

import { operations } from './operations.ts'

export const propagationStatus = z
  .object({
    validators: z.int().meta({ description: 'The number of validators that decide checks now.', example: 3 }),
    current: z.int().meta({
      description: 'The number of these validators that have applied every change of the organization.',
      example: 3,
    }),
    behindBy: z.int().meta({
      description: 'The number of transactions of the organization that the slowest validator has not applied.',
      example: 0,
    }),
  })
  .meta({ id: 'Propagation', description: 'How far validators have applied the changes of the organization.' })

export const propagation = operations({
  readPropagation: { route: 'GET /propagation', needs: 'token', returns: propagationStatus },
})
