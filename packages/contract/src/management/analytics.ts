/** Counts of checks by hour or day (docs/api.md#d2). */

import { z } from 'zod'

import { CODES } from '../vocabulary.ts'
import { EXAMPLE_ID, id, moment, timestamp } from './common.ts'
import { operations } from './operations.ts'

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export const analyticsQuery = z.strictObject({
  from: moment('The start of the period, inclusive. Default: seven days before `to`.').optional(),
  to: moment('The end of the period, exclusive. Default: now.').optional(),
  interval: z.enum(['hour', 'day']).default('day').meta({ description: 'The width of a bucket.', example: 'day' }),
  timeZone: z
    .string()
    .max(64)
    .refine(isTimeZone, 'must be the name of a time zone, such as Europe/Berlin')
    .default('UTC')
    .meta({ description: 'The time zone of the days, by its IANA name.', example: 'Europe/Berlin' }),
  productId: id('Counts only checks of this product.').optional(),
  groupBy: z
    .enum(['code', 'product'])
    .optional()
    .meta({ description: 'The field whose values split each bucket.', example: 'code' }),
})
export const checkCounts = z.object({
  from: timestamp('The start of the period, inclusive.'),
  to: timestamp('The end of the period, exclusive.'),
  interval: z.enum(['hour', 'day']).meta({ description: 'The width of a bucket.', example: 'day' }),
  data: z
    .array(
      z.object({
        start: timestamp('The start of the bucket.'),
        code: z
          .enum(CODES)
          .optional()
          .meta({ description: 'The code of the checks. Present with `groupBy=code`.', example: 'VALID' }),
        productId: z.uuid().nullable().optional().meta({
          description: 'The product of the checks; null for unknown license keys. Present with `groupBy=product`.',
          example: EXAMPLE_ID,
        }),
        count: z.int().meta({ description: 'The number of checks.', example: 1024 }),
      }),
    )
    .meta({
      description:
        'The buckets, oldest first. With `groupBy`, a bucket has one entry for each code or product with checks.',
    }),
})

export const analytics = operations({
  countChecks: { route: 'GET /analytics/checks', needs: 'analytics.read', query: analyticsQuery, returns: checkCounts },
})
