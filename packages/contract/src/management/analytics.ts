/** Counts of checks by hour or day (docs/api.md#d2). */

import { z } from 'zod'

import { CODES } from '../vocabulary.ts'
import { EXAMPLE_ID, id, moment, timestamp } from './common.ts'

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
    .meta({ description: 'The field whose values split each bucket.', example: 'code' }),
})
export const analytics = z.object({
  from: timestamp('The start, included.'),
  to: timestamp('The end, excluded.'),
  interval: z.enum(['hour', 'day']).meta({ description: 'The width of a bucket.', example: 'day' }),
  data: z
    .array(
      z.object({
        start: timestamp('The start of the bucket.'),
        code: z.enum(CODES).optional().meta({ description: 'With `groupBy=code`.', example: 'VALID' }),
        productId: z
          .uuid()
          .nullable()
          .optional()
          .meta({ description: 'With `groupBy=product`; null: the key is unknown.', example: EXAMPLE_ID }),
        count: z.int().meta({ description: 'How many checks.', example: 1024 }),
      }),
    )
    .meta({
      description: 'Every bucket, oldest first; with `groupBy`, one for each code or product that occurs in it.',
    }),
})
