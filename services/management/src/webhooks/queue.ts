/**
 * Implements the queue of deliveries in Postgres (docs/api.md#w5). A worker claims deliveries with `skip locked` and writes their outcomes.
 * A worker without a heartbeat for LEASE_SECONDS counts as ended, and its claims are released for other workers. The commits of claims and
 * outcomes do not wait for the disk. If Postgres loses one of these commits in a crash, an attempt is repeated.
 */

import { sql } from 'kysely'
import { z } from 'zod'

import type { Db } from '../context.ts'
import type { Attempt } from '../outbound/sender.ts'
import type { EndpointRow } from './secrets.ts'

const LEASE_SECONDS = 6
const FAIL_BATCH = 500
const MAX_ENDPOINTS = 1_000

/** A delivery that this worker has claimed, with its event and its endpoint. */
export interface Claimed {
  id: string
  organizationId: string
  endpointId: string
  attempts: number
  eventId: string
  /** The type of the event, and its data as JSON text. Both are null when the event has been deleted. */
  type: string | null
  data: string | null
  /** The endpoint, or null when it has been deleted. */
  endpoint: EndpointRow | null
}

/** An endpoint with due deliveries. `organizationId` and `enabled` are null when the endpoint has been deleted. */
export interface DueEndpoint {
  endpointId: string
  organizationId: string | null
  enabled: boolean | null
  isFailing: boolean
}

/** A common table expression. A statement that reads from `quick` does not wait for the disk when it commits. */
const QUICK = sql`quick as materialized (select set_config('synchronous_commit', 'off', true))`

const PENDING = sql`status = 'PENDING' and worker is null`

/**
 * Returns at most MAX_ENDPOINTS endpoints with due deliveries, in random order. The query reads a few index entries per endpoint, so its
 * cost does not depend on the lengths of the queues.
 */
export async function findDue(db: Db): Promise<DueEndpoint[]> {
  const { rows } = await sql<DueEndpoint>`
    with recursive waiting as (
      (select endpoint_id from webhook_deliveries where ${PENDING} order by endpoint_id limit 1)
      union all
      select (select d.endpoint_id from webhook_deliveries d where ${PENDING} and d.endpoint_id > w.endpoint_id
        order by d.endpoint_id limit 1)
      from waiting w where w.endpoint_id is not null
    )
    select w.endpoint_id, e.organization_id, e.enabled, e.failing_since is not null as is_failing
    from waiting w left join webhook_endpoints e on e.id = w.endpoint_id
    where w.endpoint_id is not null and exists (
      select from webhook_deliveries d where d.endpoint_id = w.endpoint_id and ${PENDING} and d.next_attempt_at <= now())
    order by random() limit ${MAX_ENDPOINTS}`.execute(db)
  return rows
}

/** Claims up to `count` due deliveries of each endpoint. */
export async function claim(
  db: Db,
  worker: string,
  wanted: readonly { endpointId: string; count: number }[],
): Promise<Claimed[]> {
  if (wanted.length === 0) return []
  const { rows } = await sql<Omit<Claimed, 'endpoint'>>`
    with ${QUICK}, claimed as (
      update webhook_deliveries set worker = ${worker} where id in (
        select due.id from quick cross join unnest(${wanted.map(({ endpointId }) => endpointId)}::uuid[], ${wanted.map(({ count }) => count)}::integer[])
          as w (endpoint_id, count)
        cross join lateral (
          select d.id from webhook_deliveries d
          where d.endpoint_id = w.endpoint_id and ${PENDING} and d.next_attempt_at <= now()
          order by d.next_attempt_at limit w.count for update skip locked
        ) due)
      returning id, organization_id, endpoint_id, attempts, event_id
    )
    select c.*, v.type, v.data::text as data
    from claimed c left join events v on v.id = c.event_id and v.organization_id = c.organization_id`.execute(db)
  const endpoints = await readEndpoints(db, [...new Set(rows.map(({ endpointId }) => endpointId))])
  return rows.map((row) => Object.assign(row, { endpoint: endpoints.get(row.endpointId) ?? null }))
}

async function readEndpoints(db: Db, ids: readonly string[]): Promise<Map<string, EndpointRow>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('webhookEndpoints').selectAll().where('id', 'in', ids).execute()
  return new Map(rows.map((row) => [row.id, row]))
}

/** The result of an attempt of a delivery. */
export interface Outcome {
  deliveryId: string
  endpointId: string
  attempt: Attempt
  /** The number of seconds until the next attempt, or null when the delivery has ended. */
  retryInSeconds: number | null
}

/** Writes the attempts, the states of their deliveries and `failingSince` of their endpoints, in one statement. */
export async function writeOutcomes(db: Db, worker: string, outcomes: readonly Outcome[]): Promise<void> {
  const column = <Value>(pick: (outcome: Outcome) => Value): Value[] => outcomes.map(pick)
  await sql`
    with ${QUICK}, given as (
      select g.* from quick cross join unnest(
        ${column(({ deliveryId }) => deliveryId)}::uuid[], ${column(({ endpointId }) => endpointId)}::uuid[],
        ${column(({ attempt }) => attempt.at)}::timestamptz[], ${column(({ attempt }) => attempt.durationMs)}::integer[],
        ${column(({ attempt }) => attempt.status)}::integer[], ${column(({ attempt }) => attempt.error)}::text[],
        ${column(({ attempt }) => attempt.response)}::text[], ${column(({ retryInSeconds }) => retryInSeconds)}::float8[]
      ) as g (delivery_id, endpoint_id, at, duration_ms, status, error, response, retry)
    ), written as (
      update webhook_deliveries d
      set attempts = d.attempts + 1, worker = null,
        status = case when g.error is null then 'SUCCEEDED' when g.retry is null then 'FAILED' else 'PENDING' end,
        next_attempt_at = case when g.error is null then null else now() + make_interval(secs => g.retry) end
      from given g where d.id = g.delivery_id and d.worker = ${worker}
      returning d.id, d.attempts
    ), noted as (
      insert into webhook_attempts (delivery_id, number, at, duration_ms, status, error, response)
      select w.id, w.attempts, g.at, g.duration_ms, g.status, g.error, g.response
      from written w join given g on g.delivery_id = w.id
      on conflict do nothing
    ), judged as (
      select endpoint_id, bool_or(error is null) as succeeded, min(at) as at from given group by endpoint_id
    )
    update webhook_endpoints e set failing_since = case when j.succeeded then null else j.at end
    from judged j where e.id = j.endpoint_id and (e.failing_since is null) <> j.succeeded`.execute(db)
}

/** Ends the pending deliveries of disabled or deleted endpoints as failed. One call ends at most FAIL_BATCH deliveries. */
export async function failPending(db: Db, endpointIds: readonly string[]): Promise<void> {
  if (endpointIds.length === 0) return
  await sql`
    update webhook_deliveries set status = 'FAILED', next_attempt_at = null where id in (
      select id from webhook_deliveries where endpoint_id = any (${endpointIds}::uuid[]) and ${PENDING}
      limit ${FAIL_BATCH} for update skip locked)`.execute(db)
}

/** Puts claimed deliveries back into the queue. Any worker may attempt them after 10 seconds. */
export async function release(db: Db, worker: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update webhook_deliveries set worker = null, next_attempt_at = now() + interval '10 seconds'
    where id = any (${ids}::uuid[]) and worker = ${worker}`.execute(db)
}

/** Releases the deliveries that the worker has claimed, except those in `known`. */
export async function releaseOthers(db: Db, worker: string, known: readonly string[]): Promise<void> {
  await sql`
    update webhook_deliveries set worker = null where worker = ${worker} and not id = any (${known}::uuid[])`.execute(
    db,
  )
}

/** Ends claimed deliveries as failed, because their event or endpoint has been deleted. */
export async function failClaimed(db: Db, worker: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update webhook_deliveries set status = 'FAILED', next_attempt_at = null, worker = null
    where id = any (${ids}::uuid[]) and worker = ${worker}`.execute(db)
}

/** Writes the heartbeat of the worker. Releases the deliveries that ended workers had claimed. */
export async function beat(db: Db, worker: string): Promise<void> {
  await sql`
    with ${QUICK}
    insert into webhook_workers (id) select ${worker}::uuid from quick on conflict (id) do update set seen_at = now()`.execute(
    db,
  )
  await sql`
    with ended as (
      delete from webhook_workers where seen_at < now() - make_interval(secs => ${LEASE_SECONDS}) returning id
    )
    update webhook_deliveries set worker = null where id in (
      select id from webhook_deliveries where worker is not null
        and worker not in (select id from webhook_workers where seen_at >= now() - make_interval(secs => ${LEASE_SECONDS}))
      limit 10000 for update skip locked)`.execute(db)
}

/** Releases the claimed deliveries of a worker that stops, and removes the worker. */
export async function leave(db: Db, worker: string): Promise<void> {
  await sql`update webhook_deliveries set worker = null where worker = ${worker}`.execute(db)
  await sql`delete from webhook_workers where id = ${worker}`.execute(db)
}

const depth = z.array(z.object({ waiting: z.coerce.number() }))

/** Returns the number of due deliveries that no worker has claimed, counted up to 100,000. */
export async function countDue(db: Db): Promise<number> {
  const { rows } = await sql`
    select count(*)::integer as waiting from (
      select from webhook_deliveries where ${PENDING} and next_attempt_at <= now() limit 100000) due`.execute(db)
  return depth.parse(rows)[0]?.waiting ?? 0
}
