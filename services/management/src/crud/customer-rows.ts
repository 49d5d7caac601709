/**
 * Defines the rows of customers. After a merge (docs/api.md#m10), requests for the merged customer get 404 with the id of the remaining
 * one.
 */

import type { Customer } from '@keyward/contract'

import type { ReadContext } from '../context.ts'
import { ApiError, notFound } from '../http/problem.ts'
import type { OwnedRows, Row } from './owned-rows.ts'

export type CustomerRow = Row<'customers'>

/** Throws NOT_FOUND, with `mergedInto` when the customer was merged into another. */
export async function throwMissingCustomer({ db, organizationId }: ReadContext, id: string): Promise<never> {
  const merged = await db
    .selectFrom('mergedCustomers')
    .select('mergedInto')
    .where('organizationId', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
  if (!merged) throw notFound('customer')
  const { mergedInto } = merged
  throw new ApiError('NOT_FOUND', `The customer was merged into ${mergedInto}. Use that id.`, { mergedInto })
}

export function showCustomer({ id, email, name, externalId, metadata, createdAt, updatedAt }: CustomerRow): Customer {
  const times = { createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() }
  return { id, email, name, externalId, metadata, ...times }
}

export const customerRows: OwnedRows<'customers', Customer> = {
  table: 'customers',
  type: 'customer',
  quota: 'customers',
  events: { created: 'customer.created', updated: 'customer.updated', deleted: 'customer.deleted' },
  show: showCustomer,
  conflicts: {
    customers_organization_id_external_id_key: { code: 'EXTERNAL_ID_EXISTS' },
    licenses_organization_id_customer_id_fkey: {
      code: 'IN_USE',
      detail: 'The customer has licenses. Delete them or merge the customer into another one.',
    },
  },
  missing: throwMissingCustomer,
}
