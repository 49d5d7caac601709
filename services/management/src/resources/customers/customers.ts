/** Defines the endpoints of customers. */

import { createCustomer, customer, customerFilter, idParams, mergeCustomer, updateCustomer } from '@keyward/contract'
import { sql } from 'kysely'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { changeRow, deleteRow, insertRow, listRows, readRow } from '../../crud/rows.ts'
import { MAX_METADATA_BODY_BYTES, vendorEndpoint } from '../../http/endpoint.ts'
import { deletedRules } from '../access-rules/cascade.ts'
import { mergeCustomers } from './merge.ts'
import { customerRows } from './rows.ts'

const tag = { name: 'Customers', description: 'The owners of licenses.' }
const errors = ['EXTERNAL_ID_EXISTS'] as const
const crud = crudEndpoints({
  tag,
  path: '/customers',
  operation: 'Customer',
  noun: 'a customer',
  readPermission: 'customers.read',
  writePermission: 'customers.write',
  schema: customer,
})

export const customers = [
  crud.list(customerFilter, (call) => {
    const { email, externalId } = call.query
    return listRows(customerRows, call, call.query, [
      ...(email === undefined ? [] : [sql`lower(email) = lower(${email})`]),
      ...(externalId === undefined ? [] : [sql`external_id = ${externalId}`]),
    ])
  }),
  crud.create(
    { body: createCustomer, maxBodyBytes: MAX_METADATA_BODY_BYTES, errors: [...errors, 'QUOTA_EXCEEDED'] },
    (call) => insertRow(customerRows, call, call.body),
  ),
  crud.read({ description: 'For the id of a merged customer, the response is 404 with `mergedInto`.' }, (call) =>
    readRow(customerRows, call, call.params.id),
  ),
  crud.change({ body: updateCustomer, maxBodyBytes: MAX_METADATA_BODY_BYTES, errors }, (call) =>
    changeRow(customerRows, call, call.params.id, call.body),
  ),
  crud.delete(
    { description: 'Also deletes the access rules of the customer.', errors: ['IN_USE'], propagates: true },
    (call) =>
      deleteRow(customerRows, call, call.params.id, {
        audited: ({ email, name, externalId }) => ({ email, name, externalId }),
        cascade: deletedRules('customerId'),
      }),
  ),
  vendorEndpoint(
    'customers.write',
    {
      tag,
      method: 'post',
      path: '/customers/{id}/merge',
      operationId: 'mergeCustomer',
      summary: 'Merge a customer into another',
      description:
        'Moves the licenses and customer rules of this customer to the remaining one and deletes this customer. ' +
        'A rule that both have becomes one rule with the sum of their matches. The remaining customer takes over ' +
        '`externalId` if it has none. Returns the remaining customer.',
      params: idParams,
      body: mergeCustomer,
      status: 200,
      response: customer,
      propagates: true,
    },
    (call) => mergeCustomers(call, call.params.id, call.body.into),
  ),
]
