/** Customers: the owners of licenses. E-mail addresses need not be unique. External ids are unique in the organization. */

import { z } from 'zod'

import { text } from '../text.ts'
import {
  countedPage,
  email,
  EXAMPLE_ID,
  exportedRows,
  exportQuery,
  externalIdOf,
  id,
  listQuery,
  MAX_METADATA_BODY_BYTES,
  metadata,
  metadataFilter,
  name,
  newEmail,
  timestamp,
  totalRequest,
} from './common.ts'
import { operations } from './operations.ts'

const customerName = name.meta({ description: 'The name of the customer.', example: 'Ada Lovelace' })
const externalId = externalIdOf('customer', 'crm-4711')

export const customer = z
  .object({
    id: z.uuid().meta({ description: 'The id of the customer.', example: EXAMPLE_ID }),
    email,
    name: customerName.nullable(),
    externalId: externalId.nullable(),
    metadata,
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'Customer', description: 'A person or company that owns licenses.' })
export type Customer = z.infer<typeof customer>

export const createCustomer = z
  .strictObject({
    email: newEmail,
    name: customerName.nullable().optional(),
    externalId: externalId.nullable().optional(),
    metadata: metadata.optional(),
  })
  .meta({ example: { email: 'ada@example.com', name: 'Ada Lovelace' } })
export const updateCustomer = createCustomer.partial().meta({ example: { name: 'Ada Lovelace' } })

export const mergeCustomer = z.strictObject({ into: id('The id of the customer that remains.') })

const customerFilter = {
  email: text(320).optional().meta({
    description: 'Returns only customers with this e-mail address, compared without regard to case.',
    example: 'ada@example.com',
  }),
  externalId: externalId.optional(),
  metadata: metadataFilter,
}

const maxBodyBytes = MAX_METADATA_BODY_BYTES

export const customers = operations({
  listCustomers: {
    route: 'GET /customers',
    needs: 'customers.read',
    query: listQuery({ ...customerFilter, ...totalRequest }),
    returns: countedPage(customer),
  },
  createCustomer: {
    route: 'POST /customers',
    needs: 'customers.write',
    body: createCustomer,
    returns: customer,
    creates: true,
    maxBodyBytes,
  },
  exportCustomers: {
    route: 'GET /customers/export',
    needs: 'customers.read',
    query: exportQuery(customerFilter),
    returns: exportedRows,
    file: 'text/csv',
  },
  readCustomer: { route: 'GET /customers/{id}', needs: 'customers.read', returns: customer },
  updateCustomer: {
    route: 'PATCH /customers/{id}',
    needs: 'customers.write',
    body: updateCustomer,
    returns: customer,
    maxBodyBytes,
  },
  deleteCustomer: { route: 'DELETE /customers/{id}', needs: 'customers.write', propagates: true },
  mergeCustomer: {
    route: 'POST /customers/{id}/merge',
    needs: 'customers.write',
    body: mergeCustomer,
    returns: customer,
    propagates: true,
  },
})
