/** Products, to which licenses belong. */

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
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'Product', description: 'An item that a vendor sells licenses for.' })
export type Product = z.infer<typeof product>

export const createProduct = z.strictObject({
  name: productName,
  entitlements: entitlements.optional(),
  metadata: metadata.optional(),
})
export const updateProduct = createProduct.partial().meta({ example: { name: 'Acme Studio' } })
