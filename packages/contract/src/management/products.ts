/** Products: what licenses are for. */

import { z } from 'zod'

import { entitlements } from '../entitlements.ts'
import { EXAMPLE_ID, metadata, name, timestamp } from './common.ts'

const productName = name.meta({ description: 'The name of the product.', example: 'Acme Studio' })

export const product = z
  .object({
    id: z.uuid().meta({ description: 'The id of the product.', example: EXAMPLE_ID }),
    name: productName,
    entitlements,
    metadata,
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
  })
  .meta({ id: 'Product', description: 'Something that is licensed.' })
export type Product = z.infer<typeof product>

export const createProduct = z.strictObject({
  name: productName,
  entitlements: entitlements.optional(),
  metadata: metadata.optional(),
})
export const updateProduct = createProduct.partial().meta({ example: { name: 'Acme Studio' } })
