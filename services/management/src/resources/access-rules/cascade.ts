/** The rules that the database deletes with what they are scoped to or name, for the audit entry of that deletion. */
import { MAX_IMPORT_ROWS } from '@keyward/contract'

import type { Change } from '../../audit/writer.ts'

export interface GoingAlong {
  /** Of many, as many as an import can have added at once; absent where there is none. */
  rules?: { deleted: number; ids: string[] }
}

/** To be asked when what is deleted is locked for update: then no rule can come to it any more. */
export async function rulesGoingAlong(
  { db, organizationId }: Change,
  column: 'productId' | 'licenseId' | 'customerId',
  id: string,
): Promise<GoingAlong> {
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
