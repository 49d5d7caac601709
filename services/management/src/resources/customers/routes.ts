/** Endpoints of customers. */
import {
  createCustomer,
  customer,
  customerFilter,
  idParams,
  listQuery,
  mergeCustomer,
  page,
  updateCustomer,
} from '@keyward/contract'

import { vendorEndpoint } from '../../http/endpoint.ts'
import { basePath } from '../../http/paths.ts'
import { mergeCustomers } from './merge.ts'
import { addCustomer, changeCustomer, deleteCustomer, listCustomers, readCustomer } from './store.ts'

const tag = 'Customers'
const path = '/customers'
const one = { tag, path: `${path}/{id}`, params: idParams } as const

export const customers = [
  vendorEndpoint(
    'customers.read',
    {
      method: 'get',
      path,
      tag,
      operationId: 'listCustomers',
      summary: 'List customers',
      query: listQuery(customerFilter),
      status: 200,
      answer: page(customer),
    },
    ({ db, organizationId, query }) => listCustomers(db, organizationId, query),
  ),
  vendorEndpoint(
    'customers.write',
    {
      method: 'post',
      path,
      tag,
      operationId: 'createCustomer',
      summary: 'Create a customer',
      body: createCustomer,
      status: 201,
      answer: customer,
      errors: ['EXTERNAL_ID_EXISTS'],
    },
    async (call) => {
      const created = await addCustomer(call, call.body)
      call.headers['location'] = `${basePath}${path}/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'customers.read',
    {
      ...one,
      method: 'get',
      operationId: 'readCustomer',
      summary: 'Read a customer',
      description: 'For a customer that was merged the answer is 404 with `mergedInto`.',
      status: 200,
      answer: customer,
    },
    ({ db, organizationId, params }) => readCustomer(db, organizationId, params.id),
  ),
  vendorEndpoint(
    'customers.write',
    {
      ...one,
      method: 'patch',
      operationId: 'updateCustomer',
      summary: 'Change a customer',
      body: updateCustomer,
      status: 200,
      answer: customer,
      errors: ['EXTERNAL_ID_EXISTS'],
    },
    (call) => changeCustomer(call, call.params.id, call.body),
  ),
  vendorEndpoint(
    'customers.write',
    {
      ...one,
      method: 'delete',
      operationId: 'deleteCustomer',
      summary: 'Delete a customer',
      description: 'Access rules that name the customer go with it.',
      status: 204,
      errors: ['IN_USE'],
      propagates: true,
    },
    (call) => deleteCustomer(call, call.params.id),
  ),
  vendorEndpoint(
    'customers.write',
    {
      tag,
      method: 'post',
      path: `${path}/{id}/merge`,
      operationId: 'mergeCustomer',
      summary: 'Merge a customer into another',
      description:
        'The licenses and the customer rules of this customer move to the remaining one, and this customer is gone. ' +
        'A rule that the remaining customer already has is folded into it. The remaining customer takes over `externalId` ' +
        'if it has none of its own. Answers the remaining customer.',
      params: idParams,
      body: mergeCustomer,
      status: 200,
      answer: customer,
      propagates: true,
    },
    (call) => mergeCustomers(call, call.params.id, call.body.into),
  ),
]
