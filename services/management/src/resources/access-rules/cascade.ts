/** Reads the access rules that Postgres deletes with their product, license or customer, for the audit entry of the deletion. */

import { MAX_IMPORT_ROWS } from '@keyward/contract'

import { listOf, type ListOfRows } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { auditedRule, selectRules, showRule } from './rule-rows.ts'

interface DeletedRules {
  /** The number of rules, at most MAX_IMPORT_ROWS of their ids, and the values of the first ones, if there are any rules. */
  rules?: { deleted: number; ids: string[]; first: ListOfRows['first'] }
}

/**
 * Returns a function that reads the rules of a product, license or customer. The caller must have locked the row of this resource, so that
 * no rule is added.
 */
export function deletedRules(
  column: 'productId' | 'licenseId' | 'customerId',
): (context: WriteContext, id: string) => Promise<DeletedRules> {
  return async (context, id) => {
    const rows = await selectRules(context)
      .select((builder) => builder.fn.countAll<number>().over().as('deleted'))
      .where(`accessRules.${column}`, '=', id)
      .orderBy('accessRules.id')
      .limit(MAX_IMPORT_ROWS)
      .execute()
    const [first] = rows
    if (!first) return {}
    const values = rows.map((row) => auditedRule(showRule(row)))
    return { rules: { deleted: first.deleted, ids: rows.map((row) => row.id), first: listOf(values).first } }
  }
}
