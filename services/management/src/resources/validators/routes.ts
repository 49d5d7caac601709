/** The endpoint that shows the operator which validators are alive, what they have applied and how far they follow. */
import { listQuery, validatorList } from '@keyward/contract'
import { sql } from 'kysely'

import type { Db } from '../../http/context.ts'
import { operatorEndpoint } from '../../http/endpoint.ts'
import { type PageQuery, readPage } from '../../http/pagination.ts'
import { liveWithin } from '../../http/propagation.ts'

async function listValidators(db: Db, query: PageQuery) {
  const list = { name: 'validators', organizationId: '' }
  // A transaction that a validator has not applied: logged, committed, and not in its snapshot.
  const behind = sql<number | null>`case when applied is not null then (
    select count(distinct c.xid)::integer from change_log c
    where c.xid >= pg_snapshot_xmin(applied::pg_snapshot) and not pg_visible_in_snapshot(c.xid, applied::pg_snapshot)) end`
  const select = db
    .selectFrom('validators')
    .select(['id', 'name', 'ready', 'startedAt', 'seenAt', 'applied'])
    .select(behind.as('behindBy'))
    .where('seenAt', '>', sql<Date>`now() - ${liveWithin}`)
  return readPage(list, query, select, (row) => ({
    id: row.id,
    name: row.name,
    ready: row.ready,
    startedAt: row.startedAt.toISOString(),
    seenAt: row.seenAt.toISOString(),
    applied: row.applied,
    behindBy: row.behindBy,
  }))
}

export const validators = [
  operatorEndpoint(
    {
      method: 'get',
      path: '/validators',
      tag: 'Validators',
      operationId: 'listValidators',
      summary: 'List live validators',
      description: 'When each was last heard of, what it has applied, and by how many changes it is behind.',
      query: listQuery({}),
      status: 200,
      answer: validatorList,
    },
    ({ db, query }) => listValidators(db, query),
  ),
]
