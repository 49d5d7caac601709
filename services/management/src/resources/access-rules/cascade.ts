/** Reads the access rules that Postgres deletes with their product, license or customer, for the audit entry of the deletion. */

import { MAX_IMPORT_ROWS } from '@keyward/contract'

import type { WriteContext } from '../../context.ts'

interface DeletedRules {
  /** The number of rules, and at most MAX_IMPORT_ROWS of their ids, if there are any rules. */
  rules?: { deleted: number; ids: string[] }
}

/**
 * Returns a function that reads the rules of a product, license or customer. The caller must have locked the row of this resource, so that
 * no rule is added.
 */
export function deletedRules(
  column: 'productId' | 'licenseId' | 'customerId',
): (context: WriteContext, id: string) => Promise<DeletedRules> {
  return async ({ db, organizationId }, id) => {
    const rows = await db
      .selectFrom('accessRules')
      .select(['id', (builder) => builder.fn.countAll<number>().over().as('deleted')])
      .where('organizationId', '=', organizationId)
      .where(column, '=', id)
      .orderBy('id')
      .limit(MAX_IMPORT_ROWS)
      .execute()
    const [first] = rows
    return first ? { rules: { deleted: first.deleted, ids: rows.map((row) => row.id) } } : {}
  }
}
