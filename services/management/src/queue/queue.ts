/**
 * Implements queues in Postgres (docs/api.md#w5). A worker claims rows with `skip locked` and writes their outcomes. A worker without a
 * heartbeat for LEASE_SECONDS counts as ended, and its claims are released for other workers. The commits of claims and outcomes do not wait
 * for the disk. If Postgres loses one of these commits in a crash, an attempt is repeated.
 */

import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'

import type { Db } from '../context.ts'

const LEASE_SECONDS = 6
const MAX_LANES = 1_000

/**
 * A table with the columns `id`, `status`, `worker` and `next_attempt_at`, and an index on the lane and `next_attempt_at` of the rows that
 * satisfy PENDING. The rows of a lane share the limits of a worker.
 */
export interface Queue {
  table: 'webhook_deliveries' | 'mails'
  lane: 'endpoint_id' | 'organization_id'
}

/** A lane with due rows. `organizationId` and `enabled` are null when the owner of the lane has been deleted. */
export interface DueLane {
  lane: string
  organizationId: string | null
  enabled: boolean | null
  isFailing: boolean
  /** The number of rows that may be attempted now, if the lane has such a limit. */
  most?: number
}

/** The number of rows of a lane that may be claimed. */
export interface Allowance {
  lane: string
  count: number
}

/** A common table expression. A statement that reads from `quick` does not wait for the disk when it commits. */
export const QUICK = sql`quick as materialized (select set_config('synchronous_commit', 'off', true))`

export const PENDING = sql`status = 'PENDING' and worker is null`

const partsOf = ({ table, lane }: Queue) => ({ rows: sql.table(table), lane: sql.ref(lane) })

/**
 * Returns at most MAX_LANES lanes with due rows, in random order. `columns` and `source` add the columns of a DueLane from the owner of the
 * lane `w.lane`. The query reads a few index entries per lane, so its cost does not depend on the lengths of the lanes.
 */
export async function findDueLanes<Lane extends DueLane>(
  db: Db,
  queue: Queue,
  columns: RawBuilder<unknown>,
  source: RawBuilder<unknown>,
): Promise<Lane[]> {
  const { rows, lane } = partsOf(queue)
  const found = await sql<Lane>`
    with recursive waiting as (
      (select ${lane} as lane from ${rows} where ${PENDING} order by ${lane} limit 1)
      union all
      select (select d.${lane} from ${rows} d where ${PENDING} and d.${lane} > w.lane order by d.${lane} limit 1)
      from waiting w where w.lane is not null
    )
    select w.lane, ${columns} from waiting w ${source}
    where w.lane is not null and exists (
      select from ${rows} d where d.${lane} = w.lane and ${PENDING} and d.next_attempt_at <= now())
    order by random() limit ${MAX_LANES}`.execute(db)
  return found.rows
}

/** Returns the common table expressions that claim up to `count` due rows of each lane. `claimed` contains the claimed rows. */
export function claiming(queue: Queue, worker: string, wanted: readonly Allowance[]): RawBuilder<unknown> {
  const { rows, lane } = partsOf(queue)
  return sql`${QUICK}, claimed as (
    update ${rows} set worker = ${worker} where id in (
      select due.id from quick cross join unnest(${wanted.map((one) => one.lane)}::uuid[], ${wanted.map(({ count }) => count)}::integer[])
        as w (lane, count)
      cross join lateral (
        select d.id from ${rows} d
        where d.${lane} = w.lane and ${PENDING} and d.next_attempt_at <= now()
        order by d.next_attempt_at limit w.count for update skip locked
      ) due)
    returning *
  )`
}

/** Puts claimed rows back into the queue. Any worker may attempt them after 10 seconds. */
export async function release(db: Db, { table }: Queue, worker: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update ${sql.table(table)} set worker = null, next_attempt_at = now() + interval '10 seconds'
    where id = any (${ids}::uuid[]) and worker = ${worker}`.execute(db)
}

/** Releases the rows that the worker has claimed, except those in `known`. */
export async function releaseOthers(db: Db, { table }: Queue, worker: string, known: readonly string[]): Promise<void> {
  await sql`
    update ${sql.table(table)} set worker = null where worker = ${worker} and not id = any (${known}::uuid[])`.execute(
    db,
  )
}

/** Writes the heartbeat of the worker. Releases the rows that ended workers had claimed. */
export async function beat(db: Db, { table }: Queue, worker: string): Promise<void> {
  await sql`
    with ${QUICK}
    insert into webhook_workers (id) select ${worker}::uuid from quick on conflict (id) do update set seen_at = now()`.execute(
    db,
  )
  await sql`
    with ended as (
      delete from webhook_workers where seen_at < now() - make_interval(secs => ${LEASE_SECONDS}) returning id
    )
    update ${sql.table(table)} set worker = null where id in (
      select id from ${sql.table(table)} where worker is not null
        and worker not in (select id from webhook_workers where seen_at >= now() - make_interval(secs => ${LEASE_SECONDS}))
      limit 10000 for update skip locked)`.execute(db)
}

/** Releases the claimed rows of a worker that stops, and removes the worker. */
export async function leave(db: Db, { table }: Queue, worker: string): Promise<void> {
  await sql`update ${sql.table(table)} set worker = null where worker = ${worker}`.execute(db)
  await sql`delete from webhook_workers where id = ${worker}`.execute(db)
}

const depth = z.array(z.object({ waiting: z.coerce.number() }))

/** Returns the number of due rows that no worker has claimed, counted up to 100,000. */
export async function countDue(db: Db, { table }: Queue): Promise<number> {
  const { rows } = await sql`
    select count(*)::integer as waiting from (
      select from ${sql.table(table)} where ${PENDING} and next_attempt_at <= now() limit 100000) due`.execute(db)
  return depth.parse(rows)[0]?.waiting ?? 0
}
