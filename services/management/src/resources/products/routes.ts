/** Endpoints of products. */
import { createProduct, idParams, listQuery, page, product, updateProduct } from '@keyward/contract'

import { vendorEndpoint } from '../../http/endpoint.ts'
import { basePath } from '../../http/paths.ts'
import { addProduct, changeProduct, deleteProduct, listProducts, readProduct } from './store.ts'

const tag = 'Products'
const path = '/products'
const one = { tag, path: `${path}/{id}`, params: idParams } as const

export const products = [
  vendorEndpoint(
    'products.read',
    {
      method: 'get',
      path,
      tag,
      operationId: 'listProducts',
      summary: 'List products',
      query: listQuery({}),
      status: 200,
      answer: page(product),
    },
    ({ db, organizationId, query }) => listProducts(db, organizationId, query),
  ),
  vendorEndpoint(
    'products.write',
    {
      method: 'post',
      path,
      tag,
      operationId: 'createProduct',
      summary: 'Create a product',
      body: createProduct,
      status: 201,
      answer: product,
    },
    async (call) => {
      const created = await addProduct(call, call.body)
      call.headers['location'] = `${basePath}${path}/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'products.read',
    { ...one, method: 'get', operationId: 'readProduct', summary: 'Read a product', status: 200, answer: product },
    ({ db, organizationId, params }) => readProduct(db, organizationId, params.id),
  ),
  vendorEndpoint(
    'products.write',
    {
      ...one,
      method: 'patch',
      operationId: 'updateProduct',
      summary: 'Change a product',
      body: updateProduct,
      status: 200,
      answer: product,
    },
    (call) => changeProduct(call, call.params.id, call.body),
  ),
  vendorEndpoint(
    'products.write',
    {
      ...one,
      method: 'delete',
      operationId: 'deleteProduct',
      summary: 'Delete a product',
      description: 'Access rules scoped to the product go with it.',
      status: 204,
      errors: ['IN_USE'],
      propagates: true,
    },
    (call) => deleteProduct(call, call.params.id),
  ),
]
