import { type Customer, customers as operations } from '@keyward/contract/management/customers'
import { type RawBuilder, sql } from 'kysely'

import type { ReadContext } from '../../context.ts'
import { customerRows } from '../../crud/customer-rows.ts'
import { columnsOf, exportList } from '../../crud/export.ts'
import { changeRow, deleteRow, hasMetadata, insertRow, listRows, readRow } from '../../crud/owned-rows.ts'
import { forgetCustomer } from '../../mails/outbox.ts'
import { implement } from '../../operations/implement.ts'
import { deletedRules } from '../access-rules/cascade.ts'
import { mergeCustomers } from './merge.ts'

const COLUMNS = columnsOf<Customer>('id', 'email', 'name', 'externalId', 'metadata', 'createdAt', 'updatedAt')

interface CustomerFilter {
  email?: string | undefined
  externalId?: string | undefined
  metadata?: string[] | undefined
}

function filtersOf(context: ReadContext, { email, externalId, metadata }: CustomerFilter): RawBuilder<unknown>[] {
  return [
    ...(email === undefined ? [] : [sql`lower(email) = lower(${email})`]),
    ...(externalId === undefined ? [] : [sql`external_id = ${externalId}`]),
    ...hasMetadata('customers', context, metadata),
  ]
}

export const customers = implement({ name: 'Customers', description: 'The owners of licenses.' }, operations, {
  listCustomers: {
    summary: 'List customers',
    handle: (call) => listRows(customerRows, call, call.query, filtersOf(call, call.query)),
  },
  exportCustomers: {
    summary: 'Export customers',
    description: 'Streams all items of the filter as CSV or JSON lines, in the order of the list.',
    handle: (call) =>
      exportList(call, { name: 'customers', resourceType: 'customer', columns: COLUMNS }, (page) =>
        listRows(customerRows, call, page, filtersOf(call, call.query)),
      ),
  },
  createCustomer: {
    summary: 'Create a customer',
    errors: ['EXTERNAL_ID_EXISTS'],
    handle: (call) => insertRow(customerRows, call, call.body),
  },
  readCustomer: {
    summary: 'Read a customer',
    description: 'For the id of a merged customer, the response is 404 with `mergedInto`.',
    handle: (call) => readRow(customerRows, call, call.params.id),
  },
  updateCustomer: {
    summary: 'Change a customer',
    errors: ['EXTERNAL_ID_EXISTS'],
    handle: (call) => changeRow(customerRows, call, call.params.id, call.body),
  },
  deleteCustomer: {
    summary: 'Delete a customer',
    description: 'Also deletes the access rules of the customer.',
    errors: ['IN_USE'],
    handle: (call) =>
      deleteRow(customerRows, call, call.params.id, {
        audited: ({ email, name, externalId, metadata }) => ({ email, name, externalId, metadata }),
        async cascade(context, id) {
          await forgetCustomer(context, id)
          return deletedRules('customerId')(context, id)
        },
      }),
  },
  mergeCustomer: {
    summary: 'Merge a customer into another',
    description:
      'Moves the licenses and customer rules of this customer to the remaining one and deletes this customer. ' +
      'A rule that both have becomes one rule with the sum of their matches. The remaining customer takes over ' +
      '`externalId` if it has none. Returns the remaining customer.',
    handle: (call) => mergeCustomers(call, call.params.id, call.body.into),
  },
})
