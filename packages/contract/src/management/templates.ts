/** Templates: the terms of a kind of license, such as "Studio, yearly" (docs/api.md#m16). */

import { z } from 'zod'

import { entitlementOverrides } from '../entitlements.ts'
import { text } from '../text.ts'
import { EXAMPLE_ID, listQuery, MAX_METADATA_BODY_BYTES, metadata, name, page, timestamp } from './common.ts'
import { licenseKey, storedPolicy, TERM_DEFAULTS, terms } from './licenses.ts'
import { operations } from './operations.ts'

const templateName = name.meta({ description: 'The name of the template.', example: 'Studio, yearly' })
const count = (description: string, example: number) => z.int().meta({ description, example })

const policy = z
  .strictObject({
    type: terms.type,
    maxMachines: terms.maxMachines.default(TERM_DEFAULTS.maxMachines),
    durationDays: terms.durationDays.default(TERM_DEFAULTS.durationDays),
    maxReleases: terms.maxReleases.default(TERM_DEFAULTS.maxReleases),
    leaseSeconds: terms.leaseSeconds.default(TERM_DEFAULTS.leaseSeconds),
    graceDays: terms.graceDays.default(TERM_DEFAULTS.graceDays),
    fileDays: terms.fileDays.default(TERM_DEFAULTS.fileDays),
  })
  .meta({
    description: 'The terms of the licenses. They have no `expiresAt`, which belongs to a single license.',
    example: { type: 'SUBSCRIPTION', durationDays: 365, maxMachines: 3 },
  })

const priceIds = z
  .array(text(200))
  .max(50)
  .transform((list) => [...new Set(list)])
  .meta({ description: 'The prices of shops that sell the template, at most 50.', example: ['price_1'] })

export const ORDER_DEFAULTS = { quantity: 'licenses', refund: 'revoke', dispute: 'suspend' } as const
export const orderOptions = z
  .strictObject({
    quantity: z.enum(['licenses', 'machines']).default(ORDER_DEFAULTS.quantity).meta({
      description: 'Whether a quantity of n creates n licenses, or one license with n times `maxMachines`.',
      example: 'licenses',
    }),
    refund: z
      .enum(['revoke', 'none'])
      .default(ORDER_DEFAULTS.refund)
      .meta({ description: 'Whether a refund revokes the licenses.', example: 'revoke' }),
    dispute: z.enum(['suspend', 'none']).default(ORDER_DEFAULTS.dispute).meta({
      description: 'Whether a dispute suspends the licenses until the payment is confirmed.',
      example: 'suspend',
    }),
  })
  .meta({ description: 'The effects of orders on licenses.' })
export type OrderOptions = z.output<typeof orderOptions>

/** The state of an application of a template to its licenses. */
const application = z
  .object({
    startedAt: timestamp('The time at which the application started.'),
    endedAt: timestamp('The time at which the application ended.').nullable(),
    total: count('The number of licenses of the template.', 1200),
    done: count('The number of licenses that have been read.', 600),
    changed: count('The number of licenses that have been changed.', 590),
  })
  .meta({ description: 'The latest application of the template to its licenses.' })

const storedPriceIds = z
  .array(z.string())
  .meta({ description: 'The prices of shops that sell the template.', example: ['price_1'] })

export const template = z
  .object({
    id: z.uuid().meta({ description: 'The id of the template.', example: EXAMPLE_ID }),
    productId: z.uuid().meta({ description: 'The id of the product.', example: EXAMPLE_ID }),
    name: templateName,
    policy: storedPolicy
      .omit({ expiresAt: true })
      .meta({ description: 'The terms of the licenses, without `expiresAt`, which belongs to a single license.' }),
    entitlements: entitlementOverrides,
    metadata,
    priceIds: storedPriceIds,
    orders: orderOptions,
    unapplied: z.array(z.string()).meta({
      description: 'The fields that have changed since the template was last applied.',
      example: ['maxMachines'],
    }),
    application: application.nullable(),
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'Template', description: 'The terms of a kind of license.' })
export type Template = z.infer<typeof template>

export const createTemplate = z.strictObject({
  name: templateName,
  policy,
  entitlements: entitlementOverrides.optional(),
  metadata: metadata.optional(),
  priceIds: priceIds.optional(),
  orders: orderOptions.optional(),
})
export const updateTemplate = z
  .strictObject({
    name: templateName.optional(),
    policy: z
      .strictObject(terms)
      .partial()
      .optional()
      .meta({ description: 'The fields of the policy to change. Other fields keep their values.' }),
    entitlements: entitlementOverrides.optional(),
    metadata: metadata.optional(),
    priceIds: priceIds.optional(),
    orders: orderOptions.optional(),
  })
  .meta({ example: { policy: { maxMachines: 5 } } })

const example = z.object({
  id: z.uuid().meta({ description: 'The id of a license.', example: EXAMPLE_ID }),
  key: licenseKey,
  fields: z
    .array(z.string())
    .meta({ description: 'The fields that change, or that are kept.', example: ['maxMachines'] }),
})

export const applyTemplate = z.strictObject({
  dryRun: z
    .boolean()
    .optional()
    .meta({ description: 'Whether only to return the effect; default false.', example: true }),
})
const applied = z.object({
  total: count('The number of licenses of the template.', 1200),
  changed: count('The number of licenses of which at least one field changes.', 1150),
  kept: count('The number of licenses that keep a value of their own in at least one field.', 50),
  examples: z
    .object({ changed: z.array(example), kept: z.array(example) })
    .meta({ description: 'Some of the licenses that change, and some of those that keep a value.' }),
  application: application.nullable(),
})
export type AppliedTemplate = z.infer<typeof applied>

const maxBodyBytes = MAX_METADATA_BODY_BYTES

export const templates = operations({
  listTemplates: {
    route: 'GET /products/{id}/templates',
    needs: 'products.read',
    query: listQuery({}),
    returns: page(template),
  },
  createTemplate: {
    route: 'POST /products/{id}/templates',
    needs: 'products.write',
    body: createTemplate,
    returns: template,
    creates: true,
    maxBodyBytes,
  },
  readTemplate: { route: 'GET /templates/{id}', needs: 'products.read', returns: template },
  updateTemplate: {
    route: 'PATCH /templates/{id}',
    needs: 'products.write',
    body: updateTemplate,
    returns: template,
    maxBodyBytes,
  },
  deleteTemplate: { route: 'DELETE /templates/{id}', needs: 'products.write' },
  applyTemplate: {
    route: 'POST /templates/{id}/apply',
    needs: 'licenses.write',
    body: applyTemplate.optional(),
    returns: applied,
  },
})
