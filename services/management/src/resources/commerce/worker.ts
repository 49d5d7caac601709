/**
 * Handles the events of inboxes (docs/api.md#b6). Every management process runs a worker. One transaction contains the changes of an event and
 * its end, so a crash loses nothing and repeats nothing. A lock lets the events of an organization run one after the other, over all processes.
 */

import { isRetryable, uuidv7 } from '@keyward/database'
import { repeat, throttledLog } from '@keyward/runtime'
import { sql } from 'kysely'
import { Gauge, type Registry } from 'prom-client'
import { z } from 'zod'

import { runInside } from '../../admission/fair-gate.ts'
import { shareOf } from '../../admission/gates.ts'
import type { Db, WriteContext } from '../../context.ts'
import { ApiError, invalidRequest } from '../../http/problem.ts'
import { validationErrors } from '../../http/validation-errors.ts'
import type { Dependencies } from '../../operations/dependencies.ts'
import { RETRY_SECONDS, secondsToRetry } from '../../queue/retries.ts'
import { requireBytes } from '../../quotas/quotas.ts'
import { handleEvent, type Outcome } from './handle.ts'
import type { ConnectionRow } from './secrets.ts'

const POLL_MS = 250
const COUNT_MS = 15_000
const LOG_INTERVAL_MS = 10_000
/** The maximum number of organizations in one round. */
const MAX_ORGANIZATIONS = 1_000
/** The number of rounds at once. A slow event delays only its own organization and one of the rounds. */
const ROUNDS = 4
const MAX_ERROR_LENGTH = 500

type WorkerOptions = Pick<Dependencies, 'db' | 'transaction' | 'gates' | 'log'> & { registry: Registry }

export interface CommerceWorker {
  /** Starts a round at once instead of at the next poll. */
  wake: () => void
  /** Starts the rounds. Returns a function that ends them, and resolves when the running one has ended. */
  start: () => () => Promise<void>
}

interface DueEvent {
  id: string
  connectionId: string
  body: string
  state: 'PENDING' | 'WAITING'
  attempts: number
}

/** Returns the organizations with due events. The query reads one index entry per organization. */
async function dueOrganizations({ db }: WorkerOptions): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive waiting as (
      (select organization_id from commerce_events where next_attempt_at is not null order by organization_id limit 1)
      union all
      select (select e.organization_id from commerce_events e
        where e.next_attempt_at is not null and e.organization_id > w.organization_id order by e.organization_id limit 1)
      from waiting w where w.organization_id is not null
    )
    select w.organization_id as id from waiting w
    where exists (select from commerce_events e where e.organization_id = w.organization_id and e.next_attempt_at <= now())
    order by random() limit ${MAX_ORGANIZATIONS}`.execute(db)
  return rows.map(({ id }) => id)
}

/** Opens an alert, or increases the count of the open one. */
async function alertVendor({ db, organizationId }: WriteContext, connectionId: string): Promise<void> {
  await sql`
    with counted as (
      update alerts set count = count + 1, last_at = now()
      where organization_id = ${organizationId} and connection_id = ${connectionId} and acknowledged_at is null returning id
    )
    insert into alerts (id, organization_id, connection_id, kind, count, first_at, last_at)
    select ${uuidv7()}::uuid, ${organizationId}::uuid, ${connectionId}::uuid, 'EVENT_WAITING', 1, now(), now()
    where not exists (select from counted)`.execute(db)
}

/** Stores the outcome. An event that waits is attempted again on the schedule too, and its last pause repeats. */
async function storeOutcome(context: WriteContext, event: DueEvent, outcome: Outcome): Promise<void> {
  const { db, organizationId } = context
  const isWaiting = outcome.state === 'WAITING'
  const pause = RETRY_SECONDS[Math.min(event.attempts, RETRY_SECONDS.length - 1)]!
  await sql`
    update commerce_events set state = ${outcome.state}, order_id = ${outcome.orderId}, waits_for = ${isWaiting ? outcome.waitsFor : []},
      error = ${isWaiting ? outcome.reason : null}, attempts = attempts + ${isWaiting ? 1 : 0}::integer,
      next_attempt_at = case when ${isWaiting} then now() + make_interval(secs => ${pause}::float8) end,
      handled_at = case when not ${isWaiting} then now() end
    where id = ${event.id} and organization_id = ${organizationId}`.execute(db)
  if (isWaiting && outcome.isPrice && event.state !== 'WAITING') await alertVendor(context, event.connectionId)
}

/** The error of an attempt, with the event that it concerns. */
class AttemptError extends Error {
  readonly event: DueEvent
  constructor(event: DueEvent, cause: unknown) {
    super('an event of a shop could not be handled', { cause })
    this.event = event
  }
}

/** Handles the first due event of an organization. Returns false if there is none, or if another process handles one. */
async function handleNext(options: WorkerOptions, organizationId: string): Promise<boolean> {
  return options.transaction(async (db) => {
    const lock = `keyward commerce ${organizationId}`
    const { rows } = await sql<DueEvent>`
      select id, connection_id, body, state, attempts from commerce_events
      where organization_id = ${organizationId} and next_attempt_at <= now()
        and (select pg_try_advisory_xact_lock(hashtextextended(${lock}, 0)))
      order by next_attempt_at, id limit 1 for no key update skip locked`.execute(db)
    const [event] = rows
    if (!event) return false
    const context: WriteContext = { db, organizationId, actor: { type: 'SYSTEM' } }
    try {
      await requireBytes(context, true)
      const connection = (
        await sql<ConnectionRow>`
          select * from commerce_connections where id = ${event.connectionId} and organization_id = ${organizationId}`.execute(
          db,
        )
      ).rows[0]!
      await storeOutcome(context, event, await handleEvent(context, connection, JSON.parse(event.body)))
    } catch (error) {
      throw new AttemptError(event, error)
    }
    return true
  })
}

function reasonOf(error: unknown): string {
  const known = error instanceof z.ZodError ? invalidRequest(validationErrors('#', error).errors) : error
  return (known instanceof ApiError ? known.message : 'The attempt failed because of an internal error.').slice(
    0,
    MAX_ERROR_LENGTH,
  )
}

/** Stores the failure of an attempt after its changes were rolled back. */
async function storeFailure(
  { db }: WorkerOptions,
  organizationId: string,
  { event, cause }: AttemptError,
): Promise<void> {
  const attempts = event.attempts + 1
  const pause = secondsToRetry(attempts, { status: null, retryAfterSeconds: null })
  await sql`
    update commerce_events set state = ${pause === null ? 'FAILED' : 'PENDING'}, attempts = ${attempts}, error = ${reasonOf(cause)},
      next_attempt_at = now() + make_interval(secs => ${pause}::float8)
    where id = ${event.id} and organization_id = ${organizationId} and attempts = ${event.attempts} and next_attempt_at is not null`.execute(
    db,
  )
}

/** A pause that `wake` ends early, also if `wake` was called since `begin`. */
class Pause {
  #isWoken = false
  #end: () => void = () => undefined

  begin(): void {
    this.#isWoken = false
  }

  readonly wake = (): void => {
    this.#isWoken = true
    this.#end()
  }

  async wait(ms: number): Promise<void> {
    if (this.#isWoken) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms).unref()
      this.#end = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function createGauge(registry: Registry, db: Db): () => Promise<void> {
  const gauge = new Gauge({
    name: 'keyward_management_commerce_events',
    help: 'Events of shops that are to be attempted (PENDING) or that wait (WAITING), counted up to 100,000.',
    labelNames: ['state'],
    registers: [registry],
  })
  return async () => {
    const { rows } = await sql<{ state: string; count: number }>`
      select state, count(*)::integer as count from (
        select state from commerce_events where next_attempt_at is not null limit 100000) due group by state`.execute(
      db,
    )
    for (const state of ['PENDING', 'WAITING'])
      gauge.set({ state }, rows.find((row) => row.state === state)?.count ?? 0)
  }
}

export function createCommerceWorker(options: WorkerOptions): CommerceWorker {
  const { gates, log, registry, db } = options
  const logFailure = throttledLog(log, 'events of shops could not be handled', {
    level: 'error',
    intervalMs: LOG_INTERVAL_MS,
  })

  const handleOne = async (organizationId: string): Promise<boolean> => {
    try {
      const share = shareOf({ kind: 'commerce', organizationId })
      return await runInside(gates.writes, share, () => handleNext(options, organizationId))
    } catch (error) {
      if (!(error instanceof AttemptError)) throw error
      const { cause, event } = error
      if (!(cause instanceof ApiError || cause instanceof z.ZodError)) logFailure({ err: cause, eventId: event.id })
      if (!isRetryable(cause)) await storeFailure(options, organizationId, error)
      return true
    }
  }
  /** Handles one event of each organization, so that none waits for the long queue of another. Returns whether there may be more. */
  const round = async (signal: AbortSignal): Promise<boolean> => {
    let isMore = false
    for (const organizationId of await dueOrganizations(options)) {
      if (signal.aborted) return false
      isMore = (await handleOne(organizationId)) || isMore
    }
    return isMore
  }

  const pauses = Array.from({ length: ROUNDS }, () => new Pause())
  const wake = () => pauses.forEach((pause) => pause.wake())
  const onError = (err: unknown) => logFailure({ err })
  const start = () => {
    const rounds = pauses.map((pause) => async (signal: AbortSignal): Promise<number> => {
      pause.begin()
      while ((await round(signal)) && !signal.aborted);
      if (!signal.aborted) await pause.wait(POLL_MS)
      return 0
    })
    const stops = [
      ...rounds.map((run) => repeat(run, { everyMs: POLL_MS, onError })),
      repeat(createGauge(registry, db), { everyMs: COUNT_MS, onError }),
    ]
    return async () => {
      const stopped = stops.map((stop) => stop())
      wake()
      await Promise.all(stopped)
    }
  }
  return { wake, start }
}
