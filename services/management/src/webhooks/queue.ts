/** Reads and writes the queue of deliveries (docs/api.md#w5). The deliveries of an endpoint are a lane. */

import { sql } from 'kysely'

import type { Db } from '../context.ts'
import type { Attempt } from '../outbound/sender.ts'
import { type Allowance, claiming, type DueLane, findDueLanes, PENDING, type Queue, QUICK } from '../queue/queue.ts'
import type { EndpointRow } from './secrets.ts'

const FAIL_BATCH = 500

export const DELIVERIES: Queue = { table: 'webhook_deliveries', lane: 'endpoint_id' }

/** A delivery that this worker has claimed, with its event and its endpoint. */
export interface Claimed {
  id: string
  organizationId: string
  /** The id of the endpoint. */
  lane: string
  attempts: number
  eventId: string
  /** The type of the event, and its data as JSON text. Both are null when the event has been deleted. */
  type: string | null
  data: string | null
  /** The endpoint, or null when it has been deleted. */
  endpoint: EndpointRow | null
}

/** Returns the endpoints with due deliveries. */
export function findDue(db: Db): Promise<DueLane[]> {
  return findDueLanes(
    db,
    DELIVERIES,
    sql`e.organization_id, e.enabled, e.failing_since is not null as is_failing`,
    sql`left join webhook_endpoints e on e.id = w.lane`,
  )
}

/** Claims up to `count` due deliveries of each endpoint. */
export async function claim(db: Db, worker: string, wanted: readonly Allowance[]): Promise<Claimed[]> {
  if (wanted.length === 0) return []
  const { rows } = await sql<Omit<Claimed, 'endpoint'>>`
    with ${claiming(DELIVERIES, worker, wanted)}
    select c.id, c.organization_id, c.endpoint_id as lane, c.attempts, c.event_id, v.type, v.data::text as data
    from claimed c left join events v on v.id = c.event_id and v.organization_id = c.organization_id`.execute(db)
  const endpoints = await readEndpoints(db, [...new Set(rows.map(({ lane }) => lane))])
  return rows.map((row) => Object.assign(row, { endpoint: endpoints.get(row.lane) ?? null }))
}

async function readEndpoints(db: Db, ids: readonly string[]): Promise<Map<string, EndpointRow>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('webhookEndpoints').selectAll().where('id', 'in', ids).execute()
  return new Map(rows.map((row) => [row.id, row]))
}

/** The result of an attempt of a delivery. */
export interface Outcome {
  id: string
  endpointId: string
  isFailing: boolean
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
        ${column(({ id }) => id)}::uuid[], ${column(({ endpointId }) => endpointId)}::uuid[],
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

/** Ends claimed deliveries as failed, because their event or endpoint has been deleted. */
export async function failClaimed(db: Db, worker: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update webhook_deliveries set status = 'FAILED', next_attempt_at = null, worker = null
    where id = any (${ids}::uuid[]) and worker = ${worker}`.execute(db)
}
