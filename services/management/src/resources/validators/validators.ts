/**
 * Defines the endpoints of the operator that show the live validators, with the number of changes that each has not applied, and the state of the
 * database and the webhooks.
 */

import { validators as operations } from '@keyward/contract/management/validators'
import { sql } from 'kysely'

import type { Db } from '../../context.ts'
import { type PageQuery, selectPage } from '../../http/pagination.ts'
import { LIVE_WITHIN } from '../../http/propagation.ts'
import { implement } from '../../operations/implement.ts'
import { countDue } from '../../queue/queue.ts'
import { DELIVERIES } from '../../webhooks/queue.ts'

export const validatorTag = { name: 'Validators', description: 'The processes that decide checks.' }

async function listValidators(db: Db, query: PageQuery) {
  const list = { name: 'validators', organizationId: '' }
  // The number of logged transactions that are not visible in the snapshot that the validator has applied.
  const behindBy = sql<number | null>`case when applied is not null then (
    select count(distinct c.xid)::integer from change_log c
    where c.xid >= pg_snapshot_xmin(applied::pg_snapshot) and not pg_visible_in_snapshot(c.xid, applied::pg_snapshot)) end`
  const select = db
    .selectFrom('validators')
    .select(['id', 'name', 'ready', 'startedAt', 'seenAt', 'applied'])
    .select([behindBy.as('behindBy'), sql<string | null>`details ->> 'version'`.as('version')])
    .where('seenAt', '>', sql<Date>`now() - ${LIVE_WITHIN}`)
  return selectPage(list, query, select, (row) => ({
    id: row.id,
    name: row.name,
    version: row.version,
    ready: row.ready,
    startedAt: row.startedAt.toISOString(),
    seenAt: row.seenAt.toISOString(),
    applied: row.applied,
    behindBy: row.behindBy,
  }))
}

async function readInstallation(db: Db) {
  const { rows } = await sql<{ version: string; bytes: number; disabledEndpoints: number }>`
    select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
      (select count(*)::integer from webhook_endpoints where not enabled) as disabled_endpoints`.execute(db)
  const { version = '', bytes = 0, disabledEndpoints = 0 } = rows[0] ?? {}
  return { database: { version, bytes }, webhooks: { due: await countDue(db, DELIVERIES), disabledEndpoints } }
}

export const validators = implement(validatorTag, operations, {
  readInstallation: {
    summary: 'Read the state of the installation',
    description:
      'Returns the size of the database and the number of deliveries that are due, for all organizations together.',
    handle: ({ db }) => readInstallation(db),
  },
  listValidators: {
    summary: 'List live validators',
    description:
      'Returns the version and the last contact of each validator, the snapshot that it has applied, and the number of changes that it has not applied.',
    handle: ({ db, query }) => listValidators(db, query),
  },
})
