import { z } from 'zod'

import { entitlements } from '../entitlements.ts'
import { EXAMPLE_ID, listQuery, MAX_METADATA_BODY_BYTES, metadata, name, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

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

const maxBodyBytes = MAX_METADATA_BODY_BYTES

export const products = operations({
  listProducts: { route: 'GET /products', needs: 'products.read', query: listQuery({}), returns: page(product) },
  createProduct: {
    route: 'POST /products',
    needs: 'products.write',
    body: createProduct,
    returns: product,
    creates: true,
    maxBodyBytes,
  },
  readProduct: { route: 'GET /products/{id}', needs: 'products.read', returns: product },
  updateProduct: {
    route: 'PATCH /products/{id}',
    needs: 'products.write',
    body: updateProduct,
    returns: product,
    propagates: true,
    maxBodyBytes,
  },
  deleteProduct: { route: 'DELETE /products/{id}', needs: 'products.write', propagates: true },
})
