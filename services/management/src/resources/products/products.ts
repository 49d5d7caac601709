/** Products: what licenses are for. A product that has licenses cannot be deleted; its access rules are deleted with it. */

import { createProduct, type Product, product, updateProduct } from '@keyward/contract/management/products'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { changeRow, deleteRow, insertRow, listRows, type OwnedRows, readRow } from '../../crud/rows.ts'
import { MAX_METADATA_BODY_BYTES } from '../../http/endpoint.ts'
import { deletedRules } from '../access-rules/cascade.ts'

const rows: OwnedRows<'products', Product> = {
  table: 'products',
  type: 'product',
  quota: 'products',
  show: ({ id, name, metadata, createdAt, updatedAt }) => ({
    id,
    name,
    metadata,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }),
  conflicts: {
    licenses_organization_id_product_id_fkey: {
      code: 'IN_USE',
      detail: 'The product has licenses. Delete them or move them to another product first.',
    },
  },
}

const crud = crudEndpoints({
  tag: { name: 'Products', description: 'The products that licenses are for.' },
  path: '/products',
  operation: 'Product',
  noun: 'a product',
  readPermission: 'products.read',
  writePermission: 'products.write',
  schema: product,
})

export const products = [
  crud.list({}, (call) => listRows(rows, call, call.query)),
  crud.create({ body: createProduct, errors: ['QUOTA_EXCEEDED'], maxBodyBytes: MAX_METADATA_BODY_BYTES }, (call) =>
    insertRow(rows, call, call.body),
  ),
  crud.read({}, (call) => readRow(rows, call, call.params.id)),
  crud.change({ body: updateProduct, maxBodyBytes: MAX_METADATA_BODY_BYTES }, (call) =>
    changeRow(rows, call, call.params.id, call.body),
  ),
  crud.delete(
    { description: 'Also deletes the access rules of the product.', errors: ['IN_USE'], propagates: true },
    (call) =>
      deleteRow(rows, call, call.params.id, { audited: ({ name }) => ({ name }), cascade: deletedRules('productId') }),
  ),
]
