/** Organizations: the vendors, isolated from each other (docs/api.md#m6, docs/api.md#m12). */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXAMPLE_ID, name, timestamp } from './common.ts'

export const plan = z.enum(['FREE', 'LITE', 'STANDARD']).meta({
  description: 'The plan. It limits how many access rules can be added, and nothing else.',
  example: 'STANDARD',
})
export type Plan = z.infer<typeof plan>

const organizationName = name.meta({ description: 'The name of the vendor.', example: 'Acme Software' })

export const organization = z
  .object({
    id: z.uuid().meta({ description: 'The id of the organization.', example: EXAMPLE_ID }),
    name: organizationName,
    plan,
    createdAt: timestamp('When it was created.'),
  })
  .meta({ id: 'Organization', description: 'A vendor.' })
export type Organization = z.infer<typeof organization>

export const createdOrganization = organization
  .extend({
    managementToken: z.string().optional().meta({
      description: 'A management token with every permission, shown once; a replayed response omits it.',
      example: 'kwm_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    apiKey: z.string().optional().meta({
      description: "An API key for customers' apps, shown once; a replayed response omits it.",
      example: 'kwk_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
  })
  .meta({ id: 'CreatedOrganization', description: 'A new vendor with its first two secrets.' })

export const createOrganization = z.strictObject({ name: organizationName, plan: plan.default('FREE') })
export const updateOrganization = z.strictObject({ name: organizationName.optional(), plan: plan.optional() })

const usage = z
  .object({
    rules: z
      .object({
        used: z.int().meta({ description: 'Unexpired access rules.', example: 3 }),
        limit: z.int().nullable().meta({ description: 'How many the plan allows; null: no limit.', example: 500 }),
      })
      .meta({ description: 'Access rules.' }),
  })
  .meta({ description: 'How much of the plan is used.' })

const { createdAt, ...named } = organization.shape
export const ownOrganization = z
  .object({ ...named, usage, createdAt })
  .meta({ id: 'OwnOrganization', description: 'The organization of the caller.' })

export const organizationFilter = {
  name: text(200).optional().meta({ description: 'The exact name.', example: 'Acme Software' }),
}
