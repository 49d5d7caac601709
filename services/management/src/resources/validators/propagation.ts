/**
 * Defines the endpoint that shows a vendor whether the validators have applied its changes. It counts validators and the vendor's own
 * changes, and returns nothing about a single validator or about other organizations.
 */

import { propagation as operations, type propagationStatus } from '@keyward/contract/management/propagation'
import { sql } from 'kysely'
import type { z } from 'zod'

import type { ReadContext } from '../../context.ts'
import { LIVE_WITHIN } from '../../http/propagation.ts'
import { implement } from '../../operations/implement.ts'
import { validatorTag } from './validators.ts'

/**
 * Counts the live validators. A validator that is loading its index for the first time is not counted. Changes of machines are ignored,
 * because validators write them all the time and apply those of other validators within about a second.
 */
async function readPropagation({ db, organizationId }: ReadContext): Promise<z.output<typeof propagationStatus>> {
  const { rows } = await sql<z.output<typeof propagationStatus>>`
    select count(*)::integer as validators, (count(*) filter (where behind_by = 0))::integer as current,
      coalesce(max(behind_by), 0) as behind_by
    from (
      select (select count(distinct c.xid)::integer from change_log c
        where c.organization_id = ${organizationId} and c.entity <> 'M' and c.xid >= pg_snapshot_xmin(v.applied::pg_snapshot)
          and not pg_visible_in_snapshot(c.xid, v.applied::pg_snapshot)) as behind_by
      from validators v where v.applied is not null and v.seen_at > now() - ${LIVE_WITHIN}) live`.execute(db)
  return rows[0] ?? { validators: 0, current: 0, behindBy: 0 }
}

export const propagation = implement(validatorTag, operations, {
  readPropagation: {
    summary: 'Read how far your changes are in force',
    description: 'Returns how many validators have applied every change of the organization.',
    handle: (call) => readPropagation(call),
  },
})
